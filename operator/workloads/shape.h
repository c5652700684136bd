// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/codec/json_fwd.h"
#include "operator/plan/snapshot.h"

// Reads selector, replicas and pod template of each kind of workload (lib/api/workload_kinds.h).
// Pure. A field that is absent or has an unexpected type reads as absent.
namespace cachewarm::workloads {

// Sources: the kinds' API references and the labels that their controllers put on pods.
// LeaderWorkerSet leaderworkerset.sigs.k8s.io/name; KubeRay ray.io/cluster, ray.io/node-type;
// KServe serving.kserve.io/inferenceservice and component, and for an LLMInferenceService
// app.kubernetes.io/{name,part-of} and kserve.io/component.
struct Shape {
  plan::WorkloadKind kind = plan::WorkloadKind::kDeployment;
  // Labels that identify exactly the workload's pods. Empty if there are none.
  std::map<std::string, std::string> selector;
  int64_t replicas = 1;
  // PodTemplateSpec inside the workload's object. Null if it has none; the template is then learnt
  // from the pods.
  const codec::Json* pod_template = nullptr;
  // Name of the Deployment whose template a Rollout uses (spec.workloadRef); selector and
  // pod_template are then the Deployment's.
  std::string borrows_from;
};

// Returns the shape of `workload`. Reads an unknown kind like a Deployment.
//  - CronJob: the pods of all its Jobs, by the labels of its pod template.
//  - LeaderWorkerSet: the pods of all groups including the leaders. The template is the workers',
//    because it creates every rank of a group but one. Ranks with another image or device count
//    have their own keys (a key is computed from the pod, not from this template).
//  - RayCluster: the pods of all worker groups. The template is that of the first group that
//    requests an accelerator, else of the first group. Without worker groups: the head.
//  - InferenceService, LLMInferenceService: by the labels of their pods. The template is learnt
//    from the pods, because runtimes and presets complete it in the cluster.
Shape ShapeOf(const codec::Json& workload);

// True if one of the workload's own pod templates has all of `labels`, which must not be empty. A
// LeaderWorkerSet has two templates.
bool MakesPodsWith(const codec::Json& workload, const std::map<std::string, std::string>& labels);

}  // namespace cachewarm::workloads
