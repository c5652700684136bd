// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/plan/plan_context.h"

// The chain of Decide(), in its order; one file each. All are total and pure but for their
// PlanContext.
namespace cachewarm::plan {

// reading.cc: the template, its container and run-as; which pods are injected, held, builders.
void ReadWorkload(PlanContext& context);

// gates/never_held.cc: may pods of this workload be held at all?
void DecideNeverHeld(PlanContext& context);

// targets.cc: nodes that pods could land on, GPU types and CPU classes, live keys.
void FindTargets(PlanContext& context);

// acceptance/decide.cc: may pods be injected? Condition Ready and its reason; the rehearsal to
// make.
void DecideAcceptance(PlanContext& context);

// builders.cc: which keys are due, who builds them, and when a build has failed.
void DecideBuilders(PlanContext& context);

// captures.cc, called for each builder whose container has started: asks for the capture, follows
// its answers, and goes on with FollowRanks when it has what the builder made.
void FollowCapture(PlanContext& context, api::BuilderStatus& builder);
// capturing/ranks.cc, called for each builder that is captured itself (`captured` is there): has
// the other pods of its group added to that, one after the other, and records the bundle.
void FollowRanks(PlanContext& context, api::BuilderStatus& builder);
// Ends the build of `builder` without a bundle.
void FailBuild(PlanContext& context, api::BuilderStatus& builder, std::string_view reason,
               std::string message);

// builder_requests.cc, called for each builder whose container runs: true when nothing is left to
// ask of it. Wishes what is, and fails a build whose request failed.
bool FollowBuildRequests(PlanContext& context, const PodView& pod, api::BuilderStatus& builder);

// starts.cc: first starts: windows to observe, results to count, seconds saved.
void DecideStarts(PlanContext& context);

// renewals.cc, called for each node: counts entry.renew up when an injected container ended badly
// before it was ever ready, so that the agent gives the next start a fresh tree. A torn .so would
// else crash every restart for ever. `entry` comes with what it remembers.
void RenewTree(const PlanContext& context, size_t node, api::WantedWarmup& entry);

// distribution.cc: bundles wanted per node; the entries of every NodeCache; counts per bundle.
void DecideDistribution(PlanContext& context);

// gates/decide.cc: which held pods are released, why, and where they should go.
void DecideGates(PlanContext& context);

// gates/flag.cc: status.min_available, and whether new pods get a gate at all.
void DecideGateInjection(PlanContext& context);

// status.cc: status.injection, the inject label, conditions Warm and Degraded, summary.
void DecideStatus(PlanContext& context);

}  // namespace cachewarm::plan
