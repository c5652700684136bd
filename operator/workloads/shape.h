// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/codec/json_fwd.h"
#include "operator/plan/snapshot.h"

// How each kind of workload (lib/api/workload_kinds.h) says what its pods look like. Pure; whatever
// is absent or of another type than expected reads as absent.
namespace cachewarm::workloads {

// Sources, beside the kinds' own API references: the labels that the kinds' controllers put on
// pods. LeaderWorkerSet leaderworkerset.sigs.k8s.io/name; KubeRay ray.io/cluster, ray.io/node-type;
// KServe serving.kserve.io/inferenceservice and component, and for an LLMInferenceService
// app.kubernetes.io/{name,part-of} and kserve.io/component.
struct Shape {
  plan::WorkloadKind kind = plan::WorkloadKind::kDeployment;
  // Equal labels by which its pods, and no others, are known. Empty: there are none.
  std::map<std::string, std::string> selector;
  int64_t replicas = 1;
  // The PodTemplateSpec, a part of the workload's object; null where it has none of its own, so
  // that it is learnt from the pods.
  const codec::Json* pod_template = nullptr;
  // Name of the Deployment that a Rollout takes its template from (spec.workloadRef); then neither
  // selector nor pod_template are its own.
  std::string borrows_from;
};

// `workload` is an object of one of those kinds; of any other it is read like a Deployment.
//  - CronJob: the pods of all its Jobs, by the labels of its pod template.
//  - LeaderWorkerSet: all pods of all groups, leaders too; the template is the workers', because
//    every rank but one of a group is made of it. Ranks whose image or devices differ have keys of
//    their own (a key is made of the pod, not of this template).
//  - RayCluster: the pods of all worker groups; the template is that of the first group that asks
//    for an accelerator, else of the first. Without worker groups: the head.
//  - InferenceService, LLMInferenceService: by the labels of their pods, and the template is learnt
//    from those: runtimes and presets complete it where we cannot see it.
Shape ShapeOf(const codec::Json& workload);

// One of its own pod templates, and so every pod that is made of it, has all of `labels`, which are
// not empty. A LeaderWorkerSet has two templates.
bool MakesPodsWith(const codec::Json& workload, const std::map<std::string, std::string>& labels);

}  // namespace cachewarm::workloads
