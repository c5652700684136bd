// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/held_pods.h"

#include <algorithm>

#include "lib/api/gate/release.h"
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

plan::HoldDeadlines DeadlinesOf(const plan::Snapshot& in) {
  return {in.pods, plan::MaxHold(in.warmup, in.constraints)};
}

}  // namespace

void SimCluster::Release(SimPod& pod) {
  pod.setup.held = false;
  pod.setup.annotations["cachewarm.io/held-seconds"] = std::to_string(now_ - pod.gated_at);
  longest_hold_ = std::max(longest_hold_, now_ - pod.gated_at);
}

void SimCluster::RunStandby() {
  if (operator_down_) {
    return;
  }
  const plan::Snapshot& in = builder_.in();
  const plan::HoldDeadlines deadlines = DeadlinesOf(in);
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
        builder_.in().now >= api::gate::Deadline(*pod, kUsualHold) + kOperatorGracePeriod) {
      Release(there->second);
    }
  }
}

// True if a single leader sees current state and completes every plan.
bool SimCluster::IsCalm() const {
  return !operator_down_ && now_ >= leaderless_until_ && setup_.operator_crash_chance == 0 &&
         setup_.stale_plan_chance == 0;
}

void SimCluster::CheckHeld() {
  const plan::Snapshot& in = builder_.in();
  const plan::HoldDeadlines deadlines = DeadlinesOf(in);
  const bool rolls = setup_.strategy == Strategy::kRolling || setup_.strategy == Strategy::kGroup;
  const bool lost = rolls && static_cast<int>(pods_ready()) < builder_.status().min_available;
  for (const auto& pod : in.pods) {
    const auto there = pods_.find(pod->meta.name);
    if (there == pods_.end() || !there->second.setup.held) {
      continue;
    }
    // A pod may be created after its rollout's budget is used up, or while no operator runs.
    const WallTime due =
        std::max({deadlines.DeadlineOf(*pod), pod->meta.created, fakes::At(alive_since_)});
    const WallTime latest = operator_down_
                                ? api::gate::Deadline(*pod, kUsualHold) + kLateWithoutOperator
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
