// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/plan/plan_context.h"

// The steps of Decide() in the order in which they run, one file each. All are total, and pure but
// for their PlanContext.
namespace cachewarm::plan {

// read_workload.cc: reads the template, its container and run-as, and marks pods as injected, held
// or builders.
void ReadWorkload(PlanContext& context);

// gates/never_held.cc: decides whether pods of this workload may be held at all.
void DecideNeverHeld(PlanContext& context);

// targets.cc: finds the nodes that pods could be scheduled to, their GPU types and CPU classes, and
// the live keys.
void FindTargets(PlanContext& context);

// acceptance/decide.cc: decides whether pods may be injected, sets condition Ready with its reason,
// and requests the admission dry run.
void DecideAcceptance(PlanContext& context);

// builders.cc: decides which keys are due, elects their builders, and detects failed builds.
void DecideBuilders(PlanContext& context);

// captures.cc: requests the capture of a builder whose container has started and follows the
// agent's answers. Calls FollowRanks once the builder's own directory is captured.
void FollowCapture(PlanContext& context, api::BuilderStatus& builder);
// capturing/ranks.cc: for a builder whose own directory is captured (`captured` is set), adds the
// other pods of its group one by one and records the bundle.
void FollowRanks(PlanContext& context, api::BuilderStatus& builder);
// Ends the build of `builder` without a bundle.
void FailBuild(PlanContext& context, api::BuilderStatus& builder, std::string_view reason,
               std::string message);

// builder_requests.cc: requests that spec.compile.requests are sent to a builder whose container
// runs, and fails the build if one of them failed. Returns true once none is left.
bool FollowBuildRequests(PlanContext& context, const PodView& pod, api::BuilderStatus& builder);

// starts.cc: decides which first starts are observed and counted, and the seconds saved.
void DecideStarts(PlanContext& context);

// renewals.cc: increments entry.renew when an injected container on `node` ended before it was ever
// ready, so that the agent gives the next start a fresh tree. A truncated .so would otherwise crash
// every restart. `entry` carries the crashes already handled.
void RenewTree(const PlanContext& context, size_t node, api::WantedWarmup& entry);

// distribution.cc: decides the bundles of each node and the entries of every NodeCache, and counts
// nodes per bundle.
void DecideDistribution(PlanContext& context);

// gates/decide.cc: decides which held pods are released, for which reason, and to which nodes.
void DecideGates(PlanContext& context);

// gates/gate_injection.cc: decides whether new pods get a gate (status.injection.gate).
void DecideGateInjection(PlanContext& context);

// status.cc: sets status.injection, the inject label, conditions Warm and Degraded, and the
// summary.
void DecideStatus(PlanContext& context);

}  // namespace cachewarm::plan
