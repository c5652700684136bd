// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/codec/json.h"
#include "operator/plan/plan_context.h"
#include "operator/plan/scheduling/shape.h"

// What the pod of a builder Job takes of its node, and what pods of the workload could lack for it.
namespace cachewarm::plan {

// After this long the pod of a Job was made, and looked at by the scheduler.
inline constexpr Duration kJobStartGrace = std::chrono::seconds(5);

// nullptr for none.
const PodView* PodOfJob(const PlanContext& context, const std::string& job);

// The Job has had its time and no pod of it is on a node: the quota, or the room, that it would
// need may be what the pods have that would wait for it.
bool MayNeverStart(const PlanContext& context, const api::BuilderStatus& builder);

// The workload's template with compile.overrides.
absl::StatusOr<codec::Json> TemplateOfJob(const PlanContext& context);

// What a Job's pod takes of a node: overrides may ask for more, or less, than the workload.
PodShape ShapeOfJob(const PlanContext& context);

// Nodes of the key, those first that have room for a Job's pod beside all pods of the workload.
struct JobNodes {
  std::vector<size_t> nodes;
  bool has_capacity = false;  // the first of them
};

JobNodes NodesByCapacity(PlanContext& context, const LiveKey& key);

// Of pods that mount a claim with the Job's: which kind of claim it is we may not read, and it
// could be one that a single node, or a single pod, has at a time. A pod of the workload, on no
// node or another than the Job's, that has had `patience` and no containers; nullptr for none.
const PodView* PodWaitingForSharedClaim(PlanContext& context, Duration patience, int job_node);

// Why the Job has to end before it has compiled; "" when it may go on.
std::string BlockingReason(PlanContext& context, const PodView* job_pod);

}  // namespace cachewarm::plan
