// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/held_pods.h"

#include <algorithm>
#include <cmath>

#include "lib/gate/core/held.h"
#include "operator/plan/gates/hold_deadline.h"
#include "tests/sim/sim_cluster.h"

// Releases of held pods without the leader's plans, and the latest time for them. The leader's own
// deadline watch is not simulated: its plans must meet the deadlines alone.
namespace cachewarm::sim {
namespace {

using std::chrono::seconds;

constexpr int kCronJobEvery = 60;
constexpr seconds kUsualHold{60};  // --max-hold of the CronJob, for pods without an annotation
constexpr seconds kOperatorGracePeriod{5};  // that the CronJob leaves to the operators
// Longest overdue hold while an operator runs, and without one, when the CronJob runs once a
// minute.
constexpr seconds kLateMax{5};
constexpr seconds kLateWithoutOperator = kLateMax + seconds(kCronJobEvery);
// Rules of docs/design that CheckHeld() applies by itself, in seconds.
constexpr int kRolloutGap = 600;   // without a new pod, after which a rollout has ended
constexpr int kUncountedHold = 2;  // a shorter hold does not begin a budget
constexpr seconds kHoldEver{3600};

}  // namespace

void SimCluster::Release(SimPod& pod) {
  pod.setup.held = false;
  pod.held_seconds = now_ - pod.gated_at;
  pod.setup.annotations["cachewarm.io/held-seconds"] = std::to_string(pod.held_seconds);
  longest_hold_ = std::max(longest_hold_, now_ - pod.gated_at);
}

void SimCluster::RunStandby() {
  if (operator_down_) {
    return;
  }
  const model::Snapshot& in = builder_.in();
  const plan::HoldDeadlines deadlines(in.pods, plan::MaxHold(in.warmup, in.constraints));
  for (const auto& pod : in.pods) {
    const auto there = pods_.find(pod->meta.name);
    if (there != pods_.end() && there->second.setup.held &&
        !controllers::EvaluateOverduePod(*pod, in.now, deadlines.DeadlineOf(*pod)).reason.empty()) {
      Release(there->second);
    }
  }
}

// The CronJob reads only pods.
void SimCluster::RunCronJob() {
  if (now_ % kCronJobEvery != 0) {
    return;
  }
  for (const auto& pod : builder_.in().pods) {
    const auto there = pods_.find(pod->meta.name);
    if (there != pods_.end() && there->second.setup.held &&
        builder_.in().now >= gate::Deadline(*pod, kUsualHold) + kOperatorGracePeriod) {
      Release(there->second);
    }
  }
}

// True if a single leader sees current state and completes every plan.
bool SimCluster::IsCalm() const {
  return !operator_down_ && now_ >= leaderless_until_ && setup_.operator_crash_chance == 0 &&
         setup_.stale_plan_chance == 0;
}

// The judge's own formula, so that a wrong deadline of the operator is found: maxHoldSeconds, at
// most half of the progress deadline, and at most that deadline less two cold starts.
double SimCluster::HoldMax() {
  const double most = builder_.warmup().spec.gate.max_hold_seconds;
  if (setup_.progress_deadline == 0) {
    return most;
  }
  const double deadline = setup_.progress_deadline;
  const double left = deadline - 2 * builder_.status().starts.cold_median_seconds;
  return std::clamp(std::min(deadline / 2, left), 0.0, most);
}

// All pods of a rollout share one budget. It begins with the creation of the first pod that is or
// was held. Returns the second at which the budget of this pod's rollout ends.
double SimCluster::BudgetEnd(const SimPod& pod) {
  std::vector<const SimPod*> rollout;
  for (const auto& [name, other] : pods_) {
    if (other.setup.revision == pod.setup.revision && other.setup.job.empty() &&
        other.setup.created <= pod.setup.created) {
      rollout.push_back(&other);
    }
  }
  std::sort(rollout.begin(), rollout.end(),
            [](const SimPod* a, const SimPod* b) { return a->setup.created > b->setup.created; });
  int begin = pod.setup.created;
  int later = pod.setup.created;
  for (const SimPod* each : rollout) {
    if (later - each->setup.created >= kRolloutGap) {
      break;
    }
    later = each->setup.created;
    if (each->setup.held || each->held_seconds >= kUncountedHold) {
      begin = later;
    }
  }
  return begin + HoldMax();
}

// Without an operator: the noted deadline, else the usual hold, and at most an hour.
WallTime SimCluster::NotedEnd(const SimPod& pod) {
  const WallTime created = fakes::At(pod.setup.created);
  const auto noted = pod.setup.annotations.find("cachewarm.io/held-until");
  const auto time = ParseTime(noted == pod.setup.annotations.end() ? "" : noted->second);
  return std::min(time.value_or(created + kUsualHold), created + kHoldEver);
}

void SimCluster::CheckHeld() {
  const model::Snapshot& in = builder_.in();
  const bool rolls = setup_.strategy == Strategy::kRolling || setup_.strategy == Strategy::kGroup;
  const bool lost = rolls && static_cast<int>(pods_ready()) < builder_.status().min_available;
  for (const auto& pod : in.pods) {
    const auto there = pods_.find(pod->meta.name);
    if (there == pods_.end() || !there->second.setup.held) {
      continue;
    }
    // A pod may be created after its rollout's budget is used up, or while no operator runs.
    const auto budget_end = static_cast<int>(std::ceil(BudgetEnd(there->second)));
    const WallTime due =
        std::max({fakes::At(budget_end), pod->meta.created, fakes::At(alive_since_)});
    const WallTime latest = operator_down_ ? NotedEnd(there->second) + kLateWithoutOperator
                                           : due + (IsCalm() ? seconds(0) : kLateMax);
    if (in.now > latest) {
      Violate("pod " + pod->meta.name + " is held beyond its deadline");
    }
    if (IsCalm() && (lost || !rolls)) {
      Violate("pod " + pod->meta.name + " is held though its workload must not wait");
    }
  }
}

}  // namespace cachewarm::sim
