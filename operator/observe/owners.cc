// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/owners.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "lib/api/names.h"
#include "operator/observe/workload.h"

namespace cachewarm::observe {
namespace {

using codec::PackedValue;
using Texts = api::Labels::Texts;

bool Carries(const PackedValue& pod_template, const Texts& labels) {
  return std::all_of(labels.begin(), labels.end(), [&](const auto& wanted) {
    const PackedValue value = pod_template.At({"metadata", "labels", wanted.first});
    return value.is_string() && value.Text() == wanted.second;
  });
}

bool LendsSuchATemplate(const World& world, const kube::KeptObject& workload, const Texts& labels) {
  const std::string lender(workload.value().TextAt({"spec", "workloadRef", "name"}));
  const kube::Kept deployment =
      lender.empty() ? nullptr
                     : world.deployments.store().Find({.ns = workload.name.ns, .name = lender});
  return deployment != nullptr && Carries(deployment->value().At({"spec", "template"}), labels);
}

bool MakesPodsWith(const World& world, const kube::KeptObject& workload, const Texts& labels) {
  const PackedValue spec = workload.value().At({"spec"});
  for (const auto& path :
       {std::initializer_list<std::string_view>{"template"},
        std::initializer_list<std::string_view>{"jobTemplate", "spec", "template"},
        std::initializer_list<std::string_view>{"leaderWorkerTemplate", "workerTemplate"},
        std::initializer_list<std::string_view>{"leaderWorkerTemplate", "leaderTemplate"}}) {
    if (Carries(spec.At(path), labels)) {
      return true;
    }
  }
  return LendsSuchATemplate(world, workload, labels);
}

bool IsAsked(const kube::KeptObject& workload) {
  return workload.label(api::kBuilderWarmupLabel).empty() && !IsFinished(workload);
}

}  // namespace

std::vector<kube::Object> FindOwners(const World& world, const std::string& ns,
                                     const Texts& labels) {
  std::vector<kube::Object> out;
  for (const std::string_view kind :
       {"Deployment", "Rollout", "StatefulSet", "LeaderWorkerSet", "CronJob", "Job"}) {
    const kube::Store* store = world.WorkloadStore(kind);
    for (const kube::Kept& kept :
         store == nullptr ? std::vector<kube::Kept>() : store->ListNamespace(ns)) {
      if (out.size() == kOwnersMax) {
        return out;
      }
      if (IsAsked(*kept) && MakesPodsWith(world, *kept, labels)) {
        out.push_back(kept->Unpack());
      }
    }
  }
  return out;
}

}  // namespace cachewarm::observe
