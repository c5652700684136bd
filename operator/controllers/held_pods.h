// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/gate/client/slow_namespace_limiter.h"
#include "lib/kube/client/client.h"
#include "lib/kube/runtime/controller.h"
#include "lib/kube/runtime/event_recorder.h"
#include "lib/kube/runtime/namespace_lanes.h"
#include "operator/apply/release_refusals.h"
#include "operator/metrics.h"
#include "operator/observe/cluster_cache.h"
#include "operator/plan/gates/hold_deadline.h"

namespace cachewarm::controllers {

// Pods that are patched at once. In the usual lane not more than 8, because a burst would slow down
// the API server. A patch in a namespace whose webhooks do not answer takes 10 s or more: with 102
// threads, the share of one such namespace, 200 pods are released in two waves, 22 s after their
// deadline. An idle thread costs 10 kB.
inline constexpr kube::Lanes kHeldLanes{.usual = 8, .slow = 136};

// Decision on one held pod.
struct HeldDecision {
  std::string_view reason;       // api::reason::kReleased…; empty: keep holding
  std::optional<Duration> wait;  // if held: time until the next evaluation
};

// Evaluates a held pod on the leader. Pure. `warmup` is null if the warmup that the pod names does
// not exist. `deadline` is the plan's deadline (operator/plan/gates/hold_deadline.h) plus a grace
// period, during which a working plan releases the pod first.
HeldDecision EvaluateHeldPod(const api::Pod& pod, const api::CacheWarmup* warmup, WallTime now,
                             WallTime deadline);

// Evaluates a held pod on a standby. Pure. Considers only the deadline, plus a grace period during
// which a working leader releases the pod first. A standby must release pods too, because the Lease
// of a killed leader can last longer than a hold.
HeldDecision EvaluateOverduePod(const api::Pod& pod, WallTime now, WallTime deadline);

// Releases held pods independently of planning: pods whose deadline has passed, and pods whose
// warmup is gone or does not hold pods any more (paused, suspended, or gate mode Never). Therefore
// no failure to plan or to write a status can hold a pod for ever. Runs on every replica. Requires
// only that the pod store has synced. Until the warmup store has synced, uses the deadline from the
// pod's own annotations. A standby considers only the deadline. The work queue key is the pod's
// "ns/name". Thread-safe.
class HeldPods {
 public:
  struct Dependencies {
    kube::Client& client;
    const Clock& clock;
    kube::EventSink& events;
    const op::Metrics& metrics;
    Log& log;
    apply::ReleaseRefusals& release_refusals;
  };

  // All references must outlive this object.
  HeldPods(const observe::ClusterCache& cluster, Dependencies deps);

  // Sets whether this replica leads. Initially it is a standby.
  void SetLeading(bool leading) { leading_ = leading; }

  // Releases all pods that Reconcile() would release, but without a grace period. A new leader
  // calls it before its controllers run. Takes at most 5 s; Reconcile() retries the pods whose
  // patch hangs.
  void Sweep(std::stop_token stop);

  absl::StatusOr<kube::Outcome> Reconcile(const std::string& key, std::stop_token stop);

 private:
  // How a pod is released.
  struct Mode {
    Duration grace;
    gate::SlowNamespaceLimiter& turns;
  };

  absl::StatusOr<kube::Outcome> ReconcilePod(const kube::CachedObjectPtr& object, const Mode& mode,
                                             std::stop_token stop);
  HeldDecision Evaluate(const api::Pod& pod, Duration grace) const;
  WallTime DeadlineOf(const api::Pod& pod, const api::CacheWarmup* warmup) const;
  std::shared_ptr<const plan::HoldDeadlines> BudgetsOf(const api::CacheWarmup& warmup) const;
  absl::Status Release(const std::shared_ptr<const api::Pod>& pod, std::string_view reason,
                       gate::SlowNamespaceLimiter& turns, std::stop_token stop);

  const observe::ClusterCache& cluster_;
  Dependencies deps_;
  gate::SlowNamespaceLimiter turns_;
  gate::SlowNamespaceLimiter sweep_turns_;
  std::atomic<bool> leading_{false};

  struct CachedBudgets {
    MonoTime read{};
    std::string resource_version;  // resourceVersion of the warmup
    std::shared_ptr<const plan::HoldDeadlines> budgets;
  };
  mutable std::mutex budgets_mutex_;
  mutable std::map<std::string, CachedBudgets> cached_budgets_;  // by "ns/name" of the warmup
};

}  // namespace cachewarm::controllers
