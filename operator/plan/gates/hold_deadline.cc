// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/gates/hold_deadline.h"

#include <algorithm>
#include <iterator>

#include "lib/api/names.h"
#include "lib/gate/core/held.h"

namespace cachewarm::plan {

namespace {

constexpr Duration kRolloutGap = std::chrono::minutes(10);
// A hold must end this many median cold starts before the progress deadline, so that the pod can
// start in time.
constexpr int kStartsLeft = 2;

// True if the pod counts as held, so that the hold budget of its rollout begins no later than the
// pod's creation. A pod that was released at once, such as a builder, does not count.
bool CountsAsHeld(const api::Pod& pod) {
  return gate::IsHeld(pod) ||
         gate::HeldSecondsOf(pod) >= std::chrono::duration<double>(kUnreportedHoldMax).count();
}

}  // namespace

Duration MaxHold(const api::CacheWarmup& warmup, const RolloutConstraints& constraints) {
  const Duration most = std::chrono::seconds(warmup.spec.gate.max_hold_seconds);
  const Duration deadline = constraints.progress_deadline;
  if (deadline <= Duration{0}) {
    return most;
  }
  const std::chrono::duration<double> cold(warmup.status.starts.cold_median_seconds);
  const Duration left = deadline - kStartsLeft * std::chrono::duration_cast<Duration>(cold);
  return std::clamp(std::min(deadline / 2, left), Duration{0}, most);
}

HoldDeadlines::HoldDeadlines(const std::vector<std::shared_ptr<const api::Pod>>& pods,
                             Duration longest)
    : longest_(longest) {
  std::vector<const api::Pod*> by_age;
  for (const auto& pod : pods) {
    if (!pod->meta.labels.contains(api::kBuilderWarmupLabel)) {
      by_age.push_back(pod.get());
    }
  }
  std::sort(by_age.begin(), by_age.end(),
            [](const api::Pod* a, const api::Pod* b) { return a->meta.created < b->meta.created; });
  for (const api::Pod* pod : by_age) {
    auto& rollouts = rollouts_[api::RevisionOf(pod->meta.labels)];
    const WallTime created = pod->meta.created;
    const bool goes_on =
        !rollouts.empty() && created - rollouts.rbegin()->second.last < kRolloutGap;
    Rollout& rollout = goes_on ? rollouts.rbegin()->second : rollouts[created];
    rollout.last = created;
    if (rollout.first_held == WallTime{} && CountsAsHeld(*pod)) {
      rollout.first_held = created;
    }
  }
}

WallTime HoldDeadlines::DeadlineOf(const api::Pod& pod) const {
  const WallTime end = EndFor(pod);
  return std::min(end, gate::Deadline(pod, end - pod.meta.created));
}

WallTime HoldDeadlines::EndFor(const api::Pod& pod) const {
  const auto revision = rollouts_.find(api::RevisionOf(pod.meta.labels));
  if (revision != rollouts_.end()) {
    const auto next = revision->second.upper_bound(pod.meta.created);
    if (next != revision->second.begin()) {
      const Rollout& rollout = std::prev(next)->second;
      const bool is_part = pod.meta.created - rollout.last < kRolloutGap;
      if (is_part && rollout.first_held != WallTime{} && rollout.first_held <= pod.meta.created) {
        return rollout.first_held + longest_;
      }
    }
  }
  return pod.meta.created + longest_;
}

}  // namespace cachewarm::plan
