// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace cachewarm::api {

// One kind of workload that spec.workloadRef and annotations support.
struct SupportedKind {
  std::string_view api_version;
  std::string_view kind;  // unique
  friend bool operator==(const SupportedKind&, const SupportedKind&) = default;
};

// The same list as the rule in crds/cachewarmups.yaml; tests/unit/lib/api keeps both equal.
inline constexpr std::array<SupportedKind, 9> kWorkloadKinds = {{
    {"apps/v1", "Deployment"},
    {"apps/v1", "StatefulSet"},
    {"batch/v1", "Job"},
    {"batch/v1", "CronJob"},
    {"argoproj.io/v1alpha1", "Rollout"},
    {"leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"},
    {"ray.io/v1", "RayCluster"},
    {"serving.kserve.io/v1beta1", "InferenceService"},
    {"serving.kserve.io/v1alpha1", "LLMInferenceService"},
}};

constexpr bool IsWorkloadKind(std::string_view api_version, std::string_view kind) {
  for (const SupportedKind& each : kWorkloadKinds) {
    if (each.kind == kind && each.api_version == api_version) {
      return true;
    }
  }
  return false;
}

}  // namespace cachewarm::api
