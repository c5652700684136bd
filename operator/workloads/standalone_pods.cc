// SPDX-License-Identifier: Apache-2.0
#include "operator/workloads/standalone_pods.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/api/workload_kinds.h"
#include "lib/base/digest.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/object.h"
#include "operator/workloads/accelerators.h"

namespace cachewarm::workloads {
namespace {

using codec::Json;
using Labels = std::map<std::string, std::string>;

constexpr std::array<std::string_view, 4> kRecommendedLabels = {
    "app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component",
    "app.kubernetes.io/part-of"};
// Labels that controllers set, although their names have no prefix such as "kubernetes.io/". The
// last two come from Kubeflow's training operator before v1.4.
constexpr std::array<std::string_view, 8> kControllerLabels = {"controller-revision-hash",
                                                               "controller-uid",
                                                               "job-name",
                                                               "pod-template-generation",
                                                               "pod-template-hash",
                                                               "rollouts-pod-template-hash",
                                                               "replica-index",
                                                               "replica-type"};
// Maximum number of labels in a CacheWarmup's spec.selector.
constexpr size_t kLabelsMax = 32;
constexpr size_t kStemMax = 32;

template <size_t N>
bool Contains(const std::array<std::string_view, N>& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

Labels UserLabels(const Json& pod) {
  Labels given;
  for (auto& [name, value] : kube::LabelsOf(pod)) {
    const bool by_user = name.find('/') == std::string::npos ? !Contains(kControllerLabels, name)
                                                             : Contains(kRecommendedLabels, name);
    if (by_user && given.size() < kLabelsMax) {
      given.emplace(name, value);
    }
  }
  return given;
}

// Returns the readable first part of a warmup's name, derived from a label. Label values are
// untrusted.
std::string Stem(const Labels& labels) {
  auto chosen = labels.begin();
  for (const char* key : {"app", "app.kubernetes.io/name"}) {
    if (const auto found = labels.find(key); found != labels.end()) {
      chosen = found;
    }
  }
  std::string stem;
  for (const char each : chosen->second.substr(0, kStemMax)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(each)) != 0;
    stem += plain ? static_cast<char>(std::tolower(static_cast<unsigned char>(each))) : '-';
  }
  stem.erase(0, std::min(stem.find_first_not_of('-'), stem.size()));
  stem.erase(stem.find_last_not_of('-') + 1);
  return stem.empty() ? "pods" : stem;
}

std::string NameFor(const Labels& labels) {
  if (labels.empty()) {
    return std::string(kUnlabelled);
  }
  return fmt::format("{}-{}", Stem(labels), DigestOf(codec::DumpJson(Json(labels))).Short());
}

// True if the pod is owned by a supported workload or by a kind whose pods never get a cache, or
// belongs to a builder Job.
bool IsManaged(const Json& pod) {
  const kube::Owner owner = kube::ControllerOf(pod);
  if (owner.kind == "DaemonSet" || owner.kind == "Node") {
    return true;
  }
  const Labels labels = kube::LabelsOf(pod);
  if (owner.kind == "ReplicaSet" &&
      (labels.contains("pod-template-hash") || labels.contains("rollouts-pod-template-hash"))) {
    return true;
  }
  return api::IsWorkloadKind(owner.api_version, owner.kind) ||
         labels.contains(std::string(api::kBuilderWarmupLabel));
}

std::string Annotation(const Json& pod, std::string_view name) {
  return kube::TextAt(pod, {"metadata", "annotations", name});
}

}  // namespace

std::optional<StandalonePods> StandalonePodsOf(const Json& pod) {
  if (IsManaged(pod) || !TemplateRequestsAccelerator(pod) ||
      Annotation(pod, api::kWarmAnnotation) == "false") {
    return std::nullopt;
  }
  StandalonePods pods{.labels = UserLabels(pod)};
  pods.warmup = NameFor(pods.labels);
  const std::string injected_for = Annotation(pod, api::kWarmupAnnotation);
  if (!injected_for.empty() && injected_for != pods.warmup) {
    return std::nullopt;
  }
  return pods;
}

}  // namespace cachewarm::workloads
