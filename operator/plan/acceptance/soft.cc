// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "lib/api/reasons.h"
#include "operator/plan/acceptance/refusals.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

// With a gate, a held pod can be kept off one node that has no usable directory.
constexpr size_t kUnpreparedMax = 1;
// Where no rehearsal says anything, as beyond a quota or under a webhook without dry run, real pods
// are what it is tried with, and this seldom.
constexpr Duration kTriedBlindly = std::chrono::hours(1);

struct Preparation {
  size_t ready = 0;
  size_t prepared = 0;
  size_t pending = 0;  // an agent is there and has not failed
  std::vector<const NodeState*> cannot;
};

Preparation CountPrepared(const Round& round) {
  Preparation out;
  for (const NodeState& node : round.nodes) {
    if (!node.possible || !node.ready) {
      continue;
    }
    ++out.ready;
    if (node.prepared) {
      ++out.prepared;
    } else if (IsWarmingFor(round.pod_template.shape, *node.view->node)) {
      continue;  // no pod can land there before it is prepared, or has had its time
    } else if (node.view->agent_ready && node.problem.empty()) {
      ++out.pending;
    } else {
      out.cannot.push_back(&node);
    }
  }
  return out;
}

// A pool at zero nodes, or with fresh ones alone: no pod can land anywhere before its directory is
// there.
bool AwaitsFreshNodes(const Preparation& count) {
  return count.prepared == 0 && count.pending == 0 && count.cannot.empty();
}

bool HasSafeFreshNodes(const Round& round) {
  return round.in.settings.fresh_nodes_tainted && WaitsForWarming(round.pod_template.shape);
}

constexpr std::string_view kFreshNodesRemedy =
    "where every node joins with the startup taint cachewarm.io/warming, set freshNodes.tainted in "
    "the operator's configuration, and pods have the cache also before their node is there";

std::string Describe(const NodeState& node) {
  return fmt::format("{} ({})", node.view->node->meta.name,
                     node.problem.empty() ? "no agent of cachewarm is ready there" : node.problem);
}

Refusal Unprepared(const Round& round) {
  const Preparation count = CountPrepared(round);
  const bool fresh = AwaitsFreshNodes(count);
  if (fresh && HasSafeFreshNodes(round)) {
    return std::nullopt;
  }
  if (count.ready == 0) {
    return No(reason::kNoFittingNode,
              fmt::format("no Ready node fits the pod template (node selector, affinity, "
                          "tolerations, devices); {}",
                          kFreshNodesRemedy));
  }
  // While paused nobody is held, and so kept off that node.
  const size_t allowed = round.may_hold() && !round.paused() ? kUnpreparedMax : 0;
  const size_t unprepared = count.pending + count.cannot.size();
  const bool enough =
      count.prepared > 0 &&
      (WasInjecting(round) ? unprepared <= allowed : count.pending == 0 && unprepared <= allowed);
  if (enough) {
    return std::nullopt;
  }
  if (count.cannot.empty()) {
    return No(reason::kPreparing,
              fmt::format("{} of {} nodes have prepared the directory{}{}{}", count.prepared,
                          count.ready, fresh ? "; " : "", fresh ? kFreshNodesRemedy : "",
                          round.paused() ? "; none is prepared while spec.paused is set" : ""));
  }
  return No(reason::kDirectoryUnusable,
            fmt::format("{} of {} nodes cannot give pods a usable directory, first {}; pods run "
                        "without the cache until they can",
                        count.cannot.size(), count.ready, Describe(*count.cannot.front())));
}

bool IsRefused(const Rehearsal& rehearsal) {
  return rehearsal.as_is == Answer::kAllowed && rehearsal.injected == Answer::kRefused;
}

bool SaysNothing(const Rehearsal& rehearsal) {
  return rehearsal.as_is == Answer::kUnknown || rehearsal.injected == Answer::kUnknown;
}

}  // namespace

Refusal RefusedByServer(const Round& round) {
  const Rehearsal& rehearsal = round.in.rehearsal;
  const CreateFailure& failure = round.in.create_failure;
  if (failure.time != WallTime{}) {
    return No(reason::kInjectionRefused,
              fmt::format("the API server refused a pod because of our volume or gate: {}",
                          failure.message));
  }
  if (IsRefused(rehearsal)) {
    return No(reason::kInjectionRefused,
              fmt::format("the API server allows the pod as it is and refuses it with our volume: "
                          "{}",
                          rehearsal.message));
  }
  // Refused once: stays withdrawn until a rehearsal that is younger says otherwise.
  const api::Condition* before = api::FindCondition(round.in.warmup.status.conditions, "Ready");
  const bool was = before != nullptr && before->status == "False" &&
                   before->reason == reason::kInjectionRefused &&
                   before->observed_generation == round.in.warmup.generation;
  const Duration blindly = SaysNothing(rehearsal) ? kTriedBlindly : Duration{0};
  return was && rehearsal.time <= before->last_transition_time + blindly
             ? No(reason::kInjectionRefused, before->message)
             : std::nullopt;
}

Refusal SoftRefusal(const Round& round) {
  using Check = Refusal (*)(const Round&);
  static constexpr std::array<Check, 3> kChecks = {RefusedByServer, Withdrawn, Unprepared};
  for (const Check check : kChecks) {
    if (Refusal refusal = check(round)) {
      return refusal;
    }
  }
  return std::nullopt;
}

}  // namespace cachewarm::plan
