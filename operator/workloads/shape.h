// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/codec/json_fwd.h"
#include "operator/model/snapshot.h"

// Reads selector, replicas and pod template of each kind of workload (lib/api/workload_kinds.h).
// Pure. A field that is absent or has an unexpected type reads as absent.
namespace cachewarm::workloads {

// Selector, size and pod template of a workload. Some kinds have no selector field. For these,
// `selector` has the labels that the kind's API reference documents for its pods:
// leaderworkerset.sigs.k8s.io/name for LeaderWorkerSet; ray.io/cluster and ray.io/node-type for
// KubeRay; serving.kserve.io/inferenceservice and component for InferenceService;
// app.kubernetes.io/{name,part-of} and kserve.io/component for LLMInferenceService.
struct WorkloadShape {
  model::WorkloadKind kind = model::WorkloadKind::kDeployment;
  // Labels that identify exactly the workload's pods. Empty if there are none.
  std::map<std::string, std::string> selector;
  int64_t replicas = 1;
  // PodTemplateSpec inside the workload's object. Null if it has none; then the template is derived
  // from a running pod.
  const codec::Json* pod_template = nullptr;
  // Name of the Deployment whose template a Rollout uses (spec.workloadRef); empty: none. If set,
  // the caller must read the pod template, and the selector if it is empty here, from the
  // Deployment.
  std::string borrows_from;
};

// Returns the shape of `workload`. Reads an unknown kind like a Deployment.
//  - CronJob: selects the pods of all its Jobs by the labels of its pod template.
//  - LeaderWorkerSet: selects the pods of all groups, including the leaders. Uses the worker
//    template, because all pods of a group except the leader are created from it. A leader with
//    another image or device count has its own key, because a key is computed from the pod, not
//    from this template.
//  - RayCluster: selects the pods of all worker groups. Uses the template of the first group that
//    requests an accelerator, else of the first group. Without worker groups: selects the head.
//  - InferenceService, LLMInferenceService: selects pods by the labels of KServe. The template is
//    derived from a running pod, because runtimes and presets complete the pod in the cluster.
WorkloadShape ShapeOf(const codec::Json& workload);

// True if a pod template of the workload has all of `labels`, which must not be empty. Of the two
// templates of a LeaderWorkerSet, either one suffices.
bool MakesPodsWith(const codec::Json& workload, const std::map<std::string, std::string>& labels);

}  // namespace cachewarm::workloads
