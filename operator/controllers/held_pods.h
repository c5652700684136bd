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

// Pods looked at by Reconcile() at the same time. One whose patch hangs keeps a worker, and so
// there are some more than patches need that do not; an idle one costs 10 kB, and more of them take
// the CPU from an API server beside them in a burst. Slow namespaces (kube::SlowNamespaceLimiter) have half.
inline constexpr int kHeldWorkers = 8;

// What is to become of a pod at our gate, if nothing else releases it.
struct HeldDecision {
  std::string_view reason;       // api::reason::kReleased…; empty: it may wait
  std::optional<Duration> wait;  // then: look again after this
};

// Pure. `warmup` is null when there is none of that name. `deadline` is that of the rollout
// (operator/plan/gates/hold_deadline.h), the same as the plan's; with some grace added, the plan,
// which knows more, comes first while it works.
HeldDecision EvaluateHeldPod(const api::Pod& pod, const api::CacheWarmup* warmup, WallTime now,
                             WallTime deadline);

// Pure. The same for a replica that does not lead: the deadline alone counts, and a leader, where
// there is one, comes first. The Lease of one that was killed outlives it for longer than any pod
// may wait.
HeldDecision EvaluateOverduePod(const api::Pod& pod, WallTime now, WallTime deadline);

// The dead man's switch of the gate: releases pods whose warmup is gone, paused or withdrawn or
// whose deadline has passed, without a look at anything else, so that no failure of planning or of
// writing a status can hold a pod for ever. Every replica has one. It reads the store of pods,
// which must have synced; while that of warmups has not, a pod is judged by what it notes itself,
// as by a replica that does not lead. The key is the pod's "ns/name". Thread-safe.
class HeldPods {
 public:
  struct Dependencies {
    kube::Client& client;
    const Clock& clock;
    kube::EventSink& events;
    const op::Metrics& metrics;
    Log& log;
  };

  // Everything must outlive it.
  HeldPods(const observe::ClusterCache& cluster, Dependencies deps);

  // Not before this is a replica a leader.
  void SetLeading(bool leading) { leading_ = leading; }

  // First thing of a new leader, before any controller runs: every pod that is due now. For 5 s at
  // most: Reconcile() goes on where pods hang.
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
    std::string resource_version;  // of the warmup
    std::shared_ptr<const plan::HoldDeadlines> budgets;
  };
  mutable std::mutex budgets_mutex_;
  mutable std::map<std::string, CachedBudgets> cached_budgets_;  // by "ns/name" of the warmup
};

}  // namespace cachewarm::controllers
