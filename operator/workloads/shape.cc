// SPDX-License-Identifier: Apache-2.0
#include "operator/workloads/shape.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "lib/api/labels.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/object.h"
#include "operator/workloads/accelerator_requests.h"

namespace cachewarm::workloads {
namespace {

using codec::At;
using codec::Json;
using model::WorkloadKind;

WorkloadShape Plain(const Json& workload) {
  return {.selector = codec::Texts(At(workload, {"spec", "selector", "matchLabels"})),
          .replicas = codec::IntegerAt(workload, {"spec", "replicas"}, 1),
          .pod_template = At(workload, {"spec", "template"})};
}

WorkloadShape OfStatefulSet(const Json& workload) {
  WorkloadShape shape = Plain(workload);
  shape.kind = WorkloadKind::kStatefulSet;
  return shape;
}

WorkloadShape OfJob(const Json& workload) {
  WorkloadShape shape = Plain(workload);
  shape.kind = WorkloadKind::kJob;
  shape.replicas = codec::IntegerAt(workload, {"spec", "parallelism"}, 1);
  return shape;
}

WorkloadShape OfCronJob(const Json& workload) {
  WorkloadShape shape{.kind = WorkloadKind::kCronJob,
                      .pod_template = At(workload, {"spec", "jobTemplate", "spec", "template"})};
  if (shape.pod_template != nullptr) {
    shape.selector = codec::Texts(At(*shape.pod_template, {"metadata", "labels"}));
  }
  return shape;
}

WorkloadShape OfRollout(const Json& workload) {
  WorkloadShape shape = Plain(workload);
  if (codec::TextAt(workload, {"spec", "workloadRef", "kind"}) == "Deployment") {
    shape.borrows_from = codec::TextAt(workload, {"spec", "workloadRef", "name"});
  }
  return shape;
}

WorkloadShape OfLeaderWorkerSet(const Json& workload) {
  WorkloadShape shape{
      .kind = WorkloadKind::kGroup,
      .selector = {{"leaderworkerset.sigs.k8s.io/name", kube::NameOf(workload).name}},
      .replicas = codec::IntegerAt(workload, {"spec", "replicas"}, 1)};
  shape.pod_template = At(workload, {"spec", "leaderWorkerTemplate", "workerTemplate"});
  if (shape.pod_template == nullptr) {
    shape.pod_template = At(workload, {"spec", "leaderWorkerTemplate", "leaderTemplate"});
  }
  return shape;
}

WorkloadShape OfRayCluster(const Json& workload) {
  const std::string name = kube::NameOf(workload).name;
  const Json& groups = codec::ListAt(workload, {"spec", "workerGroupSpecs"});
  if (groups.empty()) {
    return {.kind = WorkloadKind::kGroup,
            .selector = {{"ray.io/cluster", name}, {"ray.io/node-type", "head"}},
            .pod_template = At(workload, {"spec", "headGroupSpec", "template"})};
  }
  WorkloadShape shape{.kind = WorkloadKind::kGroup,
                      .selector = {{"ray.io/cluster", name}, {"ray.io/node-type", "worker"}},
                      .replicas = 0};
  bool found = false;
  for (const Json& group : groups) {
    // Bounded, because the sum of untrusted numbers can overflow.
    shape.replicas += std::clamp<int64_t>(codec::IntegerAt(group, {"replicas"}, 1), 0, INT32_MAX);
    const Json* pod_template = At(group, {"template"});
    if (pod_template == nullptr || found) {
      continue;
    }
    found = TemplateRequestsAccelerator(*pod_template);
    if (found || shape.pod_template == nullptr) {
      shape.pod_template = pod_template;
    }
  }
  return shape;
}

WorkloadShape OfInferenceService(const Json& workload) {
  return {.kind = WorkloadKind::kSelector,
          .selector = {{"serving.kserve.io/inferenceservice", kube::NameOf(workload).name},
                       {"component", "predictor"}}};
}

WorkloadShape OfLlmInferenceService(const Json& workload) {
  return {.kind = WorkloadKind::kSelector,
          .selector = {{"app.kubernetes.io/name", kube::NameOf(workload).name},
                       {"app.kubernetes.io/part-of", "llminferenceservice"},
                       {"kserve.io/component", "workload"}}};
}

struct Row {
  std::string_view kind;
  WorkloadShape (*shape)(const Json&);
};
constexpr std::array<Row, 8> kRows = {{{"StatefulSet", OfStatefulSet},
                                       {"Job", OfJob},
                                       {"CronJob", OfCronJob},
                                       {"Rollout", OfRollout},
                                       {"LeaderWorkerSet", OfLeaderWorkerSet},
                                       {"RayCluster", OfRayCluster},
                                       {"InferenceService", OfInferenceService},
                                       {"LLMInferenceService", OfLlmInferenceService}}};

bool Carries(const Json* pod_template, const api::Labels::Texts& labels) {
  return pod_template != nullptr &&
         api::HasLabels(codec::Texts(At(*pod_template, {"metadata", "labels"})), labels);
}

}  // namespace

WorkloadShape ShapeOf(const Json& workload) {
  const std::string kind = codec::TextAt(workload, {"kind"});
  for (const Row& row : kRows) {
    if (row.kind == kind) {
      return row.shape(workload);
    }
  }
  return Plain(workload);
}

bool MakesPodsWith(const Json& workload, const std::map<std::string, std::string>& labels) {
  return Carries(ShapeOf(workload).pod_template, labels) ||
         Carries(At(workload, {"spec", "leaderWorkerTemplate", "leaderTemplate"}), labels);
}

}  // namespace cachewarm::workloads
