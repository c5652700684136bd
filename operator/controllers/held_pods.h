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
#include "lib/kube/client/client.h"
#include "lib/kube/runtime/controller.h"
#include "lib/kube/runtime/event_recorder.h"
#include "lib/kube/runtime/slow_namespace_limiter.h"
#include "operator/metrics.h"
#include "operator/observe/cluster_cache.h"
#include "operator/plan/gates/hold_deadline.h"

namespace cachewarm::controllers {

// Pods reconciled concurrently. A hanging patch occupies a worker thread, so there are more threads
// than patches need. An idle thread costs 10 kB; more of them would take CPU from the API server
// during a burst. Slow namespaces (kube::SlowNamespaceLimiter) get half of them.
inline constexpr int kHeldWorkers = 8;

// Decision on one held pod.
struct HeldDecision {
  std::string_view reason;       // api::reason::kReleased…; empty: keep holding
  std::optional<Duration> wait;  // if held: time until the next evaluation
};

// Evaluates a held pod on the leader. Pure. `warmup` is null if no warmup has the name on the pod.
// `deadline` is the plan's deadline (operator/plan/gates/hold_deadline.h) plus some grace, so that
// the plan, while it works, releases the pod first.
HeldDecision EvaluateHeldPod(const api::Pod& pod, const api::CacheWarmup* warmup, WallTime now,
                             WallTime deadline);

// Evaluates a held pod on a standby. Pure. Only the deadline counts, plus some grace so that a
// leader releases first. A standby must release too: the Lease of a killed leader can outlast any
// hold.
HeldDecision EvaluateOverduePod(const api::Pod& pod, WallTime now, WallTime deadline);

// Releases held pods independently of planning: pods whose warmup is gone, paused or suspended, or
// whose deadline has passed. Thus no failure of planning or of a status write can hold a pod for
// ever. Runs on every replica. Needs only the pod store synced; until the warmup store has synced,
// and on a standby, decides by the pod's own annotations. The key is the pod's "ns/name".
// Thread-safe.
class HeldPods {
 public:
  struct Dependencies {
    kube::Client& client;
    const Clock& clock;
    kube::EventSink& events;
    const op::Metrics& metrics;
    Log& log;
  };

  // All references must outlive this object.
  HeldPods(const observe::ClusterCache& cluster, Dependencies deps);

  // Sets whether this replica leads. Initially it is a standby.
  void SetLeading(bool leading) { leading_ = leading; }

  // Releases all pods that are due now. A new leader calls it before its controllers run. Takes at
  // most 5 s; Reconcile() retries the pods whose patch hangs.
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
  kube::SlowNamespaceLimiter turns_;
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
