// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/plan/plan_context.h"

// The steps of Decide(), one file each, in the order in which they run. Each accepts any state and
// changes only its PlanContext.
namespace cachewarm::plan {

// read_workload.cc: reads the template with its container and user (run_as), and marks the pods
// that are injected, are held, or belong to a builder Job.
void ReadWorkload(PlanContext& context);

// gates/never_held.cc: decides whether pods of this workload may be held at all.
void DecideNeverHeld(PlanContext& context);

// targets.cc: finds the nodes that pods could be scheduled to, their GPU types and CPU classes, and
// the keys in use (LiveKey).
void FindTargets(PlanContext& context);

// acceptance/decide.cc: decides whether pods are injected, with the reason for condition Ready.
// Sets status.injection and requests the admission dry run.
void DecideAcceptance(PlanContext& context);

// evidence/hung_starts.cc: detects pods that started with a bundle and are not Ready in time, and
// suspends the bundle after the second such start, i.e. removes it from status.bundles.
void DecideHungStarts(PlanContext& context);

// builders.cc: decides which keys need a build, elects the pods or Jobs that build, and detects
// failed builds.
void DecideBuilders(PlanContext& context);

// captures.cc: asks the agent to capture the cache directory of a builder whose container has
// started, and updates `builder` from the agent's answers. Calls FollowRanks once that directory is
// captured.
void FollowCapture(PlanContext& context, api::BuilderStatus& builder);
// capturing/ranks.cc: after the builder's own directory is captured (`captured` is set), requests
// the captures of the other pods of its group (its ranks), one at a time. Completes the build
// (building/publication.h) when no pod is left.
void FollowRanks(PlanContext& context, api::BuilderStatus& builder);
// Ends the build of `builder` without a bundle.
void FailBuild(PlanContext& context, api::BuilderStatus& builder, std::string_view reason,
               std::string message);

// Once this many bundles of one key are suspended, no more are built for the same revision and
// settings.
inline constexpr int kSuspendedPerKeyMax = 2;

// builder_requests.cc: plans to send spec.compile.requests to `pod`, the pod of a builder Job or of
// the Job of its proof, and fails the build if a request failed. Returns true once all requests
// have been answered, or if there are none to send.
bool FollowBuildRequests(PlanContext& context, const PodView& pod, api::BuilderStatus& builder);

// starts.cc: decides which first starts of pods the agents observe. Adds finished ones to
// status.starts, with their result and the seconds saved.
void DecideStarts(PlanContext& context);

// renewals.cc: increments entry.renew when an injected container on `node` ended before it was ever
// ready. The agent then builds a new copy of the cache directory for the next start, because a
// truncated .so would otherwise crash every restart. entry.renewed_for lists the crashes already
// handled.
void RenewTree(const PlanContext& context, size_t node, api::WantedWarmup& entry);

// distribution.cc: decides which bundles each node should hold, plans this warmup's entries in
// every NodeCache, and counts nodes per bundle.
void DecideDistribution(PlanContext& context);

// gates/decide.cc: decides which held pods are released, for which reason, and which nodes they
// prefer.
void DecideGates(PlanContext& context);

// gates/gate_injection.cc: decides whether new pods get a gate (status.injection.gate).
void DecideGateInjection(PlanContext& context);

// status.cc: sets the inject label, status.injection.warmRevisions, the conditions Ready, Warm and
// Degraded, and the summary.
void DecideStatus(PlanContext& context);

}  // namespace cachewarm::plan
