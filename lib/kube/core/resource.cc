// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/core/resource.h"

#include <algorithm>
#include <array>

#include "fmt/format.h"

namespace cachewarm::kube {
namespace {

constexpr std::array kKnown = {kPods,
                               kNodes,
                               kNamespaces,
                               kServices,
                               kDeployments,
                               kReplicaSets,
                               kStatefulSets,
                               kControllerRevisions,
                               kDaemonSets,
                               kJobs,
                               kPodDisruptionBudgets,
                               kCronJobs,
                               kLeases,
                               kEvents,
                               kMutatingPolicyBindings,
                               kMutatingWebhooks,
                               kMutatingPolicies,
                               kSecrets,
                               kCustomResourceDefinitions,
                               kResourceSlices,
                               kRollouts,
                               kLeaderWorkerSets,
                               kRayClusters,
                               kInferenceServices,
                               kLlmInferenceServices,
                               kCacheWarmups,
                               kNodeCaches};

}  // namespace

std::string Resource::ApiVersion() const {
  return group.empty() ? std::string(version) : fmt::format("{}/{}", group, version);
}

std::span<const Resource> KnownResources() {
  return kKnown;
}

const Resource* FindResource(std::string_view api_version, std::string_view kind) {
  const auto* found = std::find_if(kKnown.begin(), kKnown.end(), [&](const Resource& resource) {
    return resource.kind == kind && resource.ApiVersion() == api_version;
  });
  return found == kKnown.end() ? nullptr : found;
}

}  // namespace cachewarm::kube
