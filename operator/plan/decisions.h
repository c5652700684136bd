// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "operator/plan/plan_context.h"

// The stages of Decide(), one file each, in the order in which they run. A stage reads const
// inputs, which are the Snapshot and the results of earlier stages, and returns its own result. Its
// parameters show which results it uses. Only Decide() joins the results into a Plan.
namespace cachewarm::plan {

// ---- what there is (Observe) --------------------------------------------------------------------

// read_workload.cc: reads the template with its container and user (run_as).
WorkloadView ReadWorkload(const Snapshot& in);
// Reads the pods, and marks those that are injected, are held, or belong to a builder Job.
std::vector<PodView> ReadPods(const Snapshot& in, const TemplateView& pod_template);

// gates/hold_policy.cc: decides whether pods of this workload may be held at all.
HoldPolicy DecideHoldPolicy(const Snapshot& in, const TemplateView& pod_template);

// targets.cc: finds the nodes that pods could be scheduled to, their GPU types and CPU classes, and
// the keys in use (LiveKey). Sets PodView::node.
ClusterView FindTargets(const Snapshot& in, const TemplateView& pod_template,
                        std::vector<PodView> pods);

// ---- injection and bundles ----------------------------------------------------------------------

// acceptance/acceptance.cc: decides whether pods are injected, with the reason for condition Ready,
// and requests the admission dry run.
Acceptance DecideAcceptance(const Context& context);

// starts/hung_starts.cc: detects pods that started with a bundle and are not Ready in time, and
// suspends the bundle after the second such start.
BundleReview DecideHungStarts(const Context& context);

// builders/builders.cc: follows running builds and publishes their bundles, then decides which keys
// need a build and elects the pods or Jobs that build (builders/election.h, builders/attempts.h).
Builds DecideBuilders(const Context& context, const Acceptance& acceptance, BundleReview review);

// The parts of DecideBuilders() that other files have. Each adds to `builds`, and changes its
// argument `builder`, one of `builds.builders`.
//
// captures/captures.cc: asks the agent to capture the cache directory of a builder whose container
// has started, and updates `builder` from the agent's answers. Calls FollowRanks once that
// directory is captured.
void FollowCapture(const Context& context, Builds& builds, api::BuilderStatus& builder);
// captures/ranks.cc: after the builder's own directory is captured (`captured` is set), requests
// the captures of the other pods of its group (its ranks), one at a time. Completes the build
// (builders/publication.h) when no pod is left.
void FollowRanks(const Context& context, Builds& builds, api::BuilderStatus& builder);
// captures/harvests.cc: elects, for each key, the node whose late units extend the bundle of the
// key (spec.harvest), follows its capture, and replaces the bundle by the larger one.
void DecideHarvests(const Context& context, const Acceptance& acceptance, Builds& builds);
// builders/sent_requests.cc: plans to send spec.compile.requests to `pod`, the pod of a builder Job
// or of the Job of its proof, and fails the build if a request failed. Returns true once all
// requests have been answered, or if there are none to send.
bool FollowBuildRequests(const Context& context, Builds& builds, const PodView& pod,
                         api::BuilderStatus& builder);

// Once this many bundles of one key are suspended, no more are built for the same revision and
// settings.
inline constexpr int kSuspendedPerKeyMax = 2;

// ---- starts and nodes ---------------------------------------------------------------------------

struct CountedStarts {
  api::Starts starts;  // status.starts
  // By index of the node: the first starts that its agent must observe.
  std::map<size_t, std::vector<api::StartWindow>> windows;
  // Revisions with a pod whose start was a hit or whose cache was captured.
  std::set<std::string> proven_revisions;
  std::vector<api::StartSample> counted;           // the starts that this plan adds to `starts`
  std::vector<api::StartSample> engines_reported;  // those that got their EngineStart
  std::vector<DesiredLogRead> log_reads;
  Effects effects;
};

// starts/starts.cc: decides which first starts of pods the agents observe, and counts the finished
// ones, with their result and the seconds saved.
CountedStarts DecideStarts(const PlanContext& context);
// The part of DecideStarts() in starts/engine_logs.cc: adds the reports of engines to the counted
// starts, and decides of which pods the log is read. Call it after the starts are counted.
void FollowEngineLogs(const PlanContext& context, CountedStarts& out);

struct Distribution {
  Bundles bundles;  // with the counts of their nodes
  std::vector<api::BuilderStatus> builders;
  std::vector<NodeEntries> entries;
  // By index of the node: the number of fetch-slot durations that the node must wait before it gets
  // a fetch slot.
  std::map<size_t, int> slots_before;
  Effects effects;
};

// distribution/distribution.cc: decides which bundles each node should have, plans this warmup's
// entries in every NodeCache, and counts nodes per bundle.
Distribution DecideDistribution(const PlanContext& context, const CountedStarts& starts);

// distribution/renewals.cc: increments entry.renew when an injected container on `node` ended
// before it was ever ready. The agent then builds a new copy of the cache directory for the next
// start, because a truncated .so would otherwise crash every restart. entry.renewed_for lists the
// crashes already handled.
void RenewTree(const Context& context, size_t node, api::WantedWarmup& entry);

// ---- held pods and status -----------------------------------------------------------------------

// The context of the last stages.
struct DistributedContext : PlanContext {
  DistributedContext(const PlanContext& context, const CountedStarts& counted,
                     const Distribution& distributed)
      : PlanContext(context),
        starts(counted),
        bundles(distributed.bundles),
        builders(distributed.builders),
        slots_before(distributed.slots_before) {}

  const CountedStarts& starts;
  const Bundles& bundles;
  const std::vector<api::BuilderStatus>& builders;
  const std::map<size_t, int>& slots_before;
};

struct GateDecisions {
  std::vector<GateRelease> releases;  // builders first
  Reserved reserved;                  // also for the pods that are still held
  Effects effects;
};

// gates/gates.cc: decides which held pods are released, for which reason, and which nodes they
// prefer.
GateDecisions DecideGates(const DistributedContext& context);

struct GateInjection {
  bool add_gate = false;  // status.injection.gate
  Effects effects;
};

// gates/gate_injection.cc: decides whether new pods get a gate. `reserved` is the capacity that
// DecideGates() has reserved.
GateInjection DecideGateInjection(const DistributedContext& context, const Reserved& reserved);

struct StatusDecision {
  std::vector<api::Condition> conditions;
  api::Summary summary;
  std::vector<std::string> warm_revisions;  // status.injection.warmRevisions
  int bundles_suspended = 0;                // Plan::bundles_suspended
  Effects effects;
};

// status.cc: decides the conditions Ready, Warm and Degraded, the warm revisions and the summary.
StatusDecision DecideStatus(const DistributedContext& context);
// Returns the change of the inject label; nullopt if it is as it should be.
std::optional<bool> DecideInjectLabel(const Context& context, const Acceptance& acceptance);

}  // namespace cachewarm::plan
