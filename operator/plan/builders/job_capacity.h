// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/codec/json.h"
#include "operator/plan/context.h"
#include "operator/plan/effects.h"
#include "operator/plan/scheduling/pod_shape.h"

// Finds capacity for the pod of a builder Job, and decides whether pods of the workload need that
// capacity.
namespace cachewarm::plan {

// Time after which the pod of a new Job should exist and the scheduler should have tried once to
// place it.
inline constexpr Duration kJobStartGrace = std::chrono::seconds(5);

// Returns the pod of the Job; nullptr if there is none.
const PodView* PodOfJob(const Context& context, const std::string& job);

// True if kJobStartGrace has passed since the Job of `builder` was requested and the Job's pod is
// still not bound to a node. Pods of the workload must then not wait for this build: they may
// themselves occupy the quota or capacity that the Job's pod needs.
bool MayNeverStart(const Context& context, const api::BuilderStatus& builder);

// Returns the workload's template with compile.overrides applied. Errors: those of
// CheckOverrides().
absl::StatusOr<codec::Json> TemplateOfJob(const Context& context);

// Returns the shape of a Job's pod; compile.overrides may change its resource requests.
PodShape ShapeOfJob(const Context& context);

// The nodes on which a builder Job for one key may run. Nodes that have capacity for the Job's pod
// in addition to all pods of the workload come first.
struct JobNodes {
  std::vector<size_t> nodes;
  bool has_capacity = false;  // the first node has such capacity
};

JobNodes NodesByCapacity(const Context& context, Reserved reserved, const LiveKey& key);

// Returns a pod of the workload that may be waiting for a PersistentVolumeClaim because the Job's
// pod mounts that claim too; nullptr if there is none. Such a pod has not started although `grace`
// has passed since its creation or, if it was held, its release. It is not on `job_node`, the node
// of the Job's pod (an index into Context::nodes; -1: none). The operator cannot read the
// access mode of the claim, so it assumes that only one node or pod may use the claim.
const PodView* PodWaitingForSharedClaim(const Context& context, Duration grace, int job_node,
                                        Effects& effects);

// Returns the reason why the Job must end before it has compiled; "" if it may continue.
std::string BlockingReason(const Context& context, const PodView* job_pod, const Reserved& reserved,
                           Effects& effects);

}  // namespace cachewarm::plan
