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
#include "operator/apply/release_refusals.h"
#include "operator/metrics.h"
#include "operator/observe/cluster_cache.h"
#include "operator/plan/gates/hold_deadline.h"

namespace cachewarm::controllers {

// Number of worker threads. More than normal patches need, because a hanging patch occupies a
// thread, and an idle thread costs only 10 kB. Not more than 8, because during a burst all threads
// together would slow down the API server. At most half of the threads patch pods of slow
// namespaces (gate::SlowNamespaceLimiter).
inline constexpr int kHeldWorkers = 8;

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
  absl::StatusOr<kube::Outcome> ReconcilePod(const kube::CachedObjectPtr& object, Duration grace,
                                             std::stop_token stop);
  HeldDecision Evaluate(const api::Pod& pod, Duration grace) const;
  WallTime DeadlineOf(const api::Pod& pod, const api::CacheWarmup* warmup) const;
  std::shared_ptr<const plan::HoldDeadlines> BudgetsOf(const api::CacheWarmup& warmup) const;
  absl::Status Release(const std::shared_ptr<const api::Pod>& pod, std::string_view reason,
                       std::stop_token stop);

  const observe::ClusterCache& cluster_;
  Dependencies deps_;
  gate::SlowNamespaceLimiter turns_;
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
