// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/api/reasons.h"
#include "operator/plan/acceptance/refusals.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

// Pods are injected even if one node in so many, or a single one, has no usable directory: the
// release of a held pod excludes those nodes.
constexpr size_t kNodesPerUnprepared = 10;
// A release excludes at least this many nodes, however many pods are released (gates/gates.cc).
constexpr size_t kUnpreparedMax = 64;
// After the API server has rejected a pod, injection is retried with real pods at this interval if
// the dry run is inconclusive (exhausted quota, webhook without dry-run support).
constexpr Duration kRetryWithoutDryRun = std::chrono::hours(1);

struct Preparation {
  size_t ready = 0;
  size_t prepared = 0;
  size_t pending = 0;  // not prepared yet: the agent is ready and has reported no problem
  std::vector<const NodeState*> cannot;  // no agent is ready there, or the agent reported a problem
};

Preparation CountPrepared(const Context& context) {
  Preparation out;
  for (const NodeState& node : context.nodes) {
    if (!node.possible || !node.ready) {
      continue;
    }
    ++out.ready;
    if (node.prepared) {
      ++out.prepared;
    } else if (HasStartupTaintFor(context.pod_template.shape, *node.view->node)) {
      continue;  // the taint keeps pods off until the node is prepared or kWarmingMax has passed
    } else if (node.view->agent_ready && node.problem.empty()) {
      ++out.pending;
    } else {
      out.cannot.push_back(&node);
    }
  }
  return out;
}

// True if no Ready node can take the pods yet: there is none, or all are new and still have a
// startup taint.
bool AwaitsFreshNodes(const Preparation& count) {
  return count.prepared == 0 && count.pending == 0 && count.cannot.empty();
}

bool HasSafeFreshNodes(const Context& context) {
  return context.in.settings.fresh_nodes_tainted &&
         RepelledByStartupTaints(context.pod_template.shape);
}

constexpr std::string_view kFreshNodesRemedy =
    "if every node joins with the startup taint cachewarm.io/warming, set freshNodes.tainted in "
    "the operator's configuration: pods are then injected before their node exists";

std::string Describe(const NodeState& node) {
  return fmt::format("{} ({})", node.view->node->meta.name,
                     node.problem.empty()
                         ? "no cachewarm agent is ready there; check its pod and agent.tolerations"
                         : node.problem);
}

Refusal Unprepared(const AcceptanceContext& context) {
  const Preparation count = CountPrepared(context);
  const bool fresh = AwaitsFreshNodes(count);
  if (fresh && HasSafeFreshNodes(context)) {
    return std::nullopt;
  }
  if (count.ready == 0) {
    return Refuse(reason::kNoFittingNode,
                  fmt::format("no Ready node fits the pod template (node selector, affinity, "
                              "tolerations, devices); {}",
                              kFreshNodesRemedy));
  }
  // No pod is held while the warmup is paused, so none can be kept off an unprepared node.
  const size_t share = std::clamp(count.prepared / kNodesPerUnprepared, size_t{1}, kUnpreparedMax);
  const size_t allowed = context.may_hold() && !context.paused() ? share : 0;
  const size_t unprepared = count.pending + count.cannot.size();
  const bool enough =
      count.prepared > 0 &&
      (WasInjecting(context) ? unprepared <= allowed : count.pending == 0 && unprepared <= allowed);
  if (enough) {
    return std::nullopt;
  }
  if (count.cannot.empty()) {
    return Refuse(
        reason::kPreparingNodes,
        fmt::format("{} of {} nodes have prepared the cache directory{}{}{}", count.prepared,
                    count.ready, fresh ? "; " : "", fresh ? kFreshNodesRemedy : "",
                    context.paused() ? "; no directory is prepared while spec.paused is set" : ""));
  }
  return Refuse(reason::kDirectoryUnusable,
                fmt::format("{} of {} nodes have no usable cache directory, for example {}; pods "
                            "run without the cache until this is fixed",
                            count.cannot.size(), count.ready, Describe(*count.cannot.front())));
}

bool IsRefused(const AdmissionDryRun& dry_run) {
  return dry_run.unmodified == DryRunResult::kAllowed && dry_run.injected == DryRunResult::kRefused;
}

bool IsInconclusive(const AdmissionDryRun& dry_run) {
  return dry_run.unmodified == DryRunResult::kUnknown || dry_run.injected == DryRunResult::kUnknown;
}

}  // namespace

Refusal RefusedByServer(const AcceptanceContext& context) {
  const AdmissionDryRun& dry_run = context.in.dry_run;
  const CreateFailure& failure = context.in.create_failure;
  if (failure.time != WallTime{}) {
    return Refuse(
        reason::kInjectionRejected,
        fmt::format(
            "the API server rejected a pod because of the cache volume or the scheduling gate: {}",
            failure.message));
  }
  if (IsRefused(dry_run)) {
    return Refuse(reason::kInjectionRejected,
                  fmt::format("the API server accepts the pod without the cache volume but rejects "
                              "it with the volume: {}",
                              dry_run.message));
  }
  // After a rejection, injection stays off until a newer dry run allows the pod.
  const api::Condition* before = api::FindCondition(context.in.warmup.status.conditions, "Ready");
  const bool was = before != nullptr && before->status == "False" &&
                   before->reason == reason::kInjectionRejected &&
                   before->observed_generation == context.in.warmup.generation;
  const Duration retry = IsInconclusive(dry_run) ? kRetryWithoutDryRun : Duration{0};
  return was && dry_run.time <= before->last_transition_time + retry
             ? Refuse(reason::kInjectionRejected, before->message)
             : std::nullopt;
}

Refusal SoftRefusal(const AcceptanceContext& context) {
  using Check = Refusal (*)(const AcceptanceContext&);
  static constexpr std::array<Check, 3> kChecks = {RefusedByServer, Suspended, Unprepared};
  for (const Check check : kChecks) {
    if (Refusal refusal = check(context)) {
      return refusal;
    }
  }
  return std::nullopt;
}

}  // namespace cachewarm::plan
