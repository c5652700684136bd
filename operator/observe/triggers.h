// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/kube/runtime/work_queue.h"
#include "operator/observe/cluster_cache.h"
#include "operator/observe/storm_limiter.h"

namespace cachewarm::observe {

struct Queues {
  kube::WorkQueue& warmups;  // "ns/name" of a CacheWarmup, present or deleted
  kube::WorkQueue& nodes;    // node name
  kube::WorkQueue& held;     // "ns/name" of a held pod
};

// Converts changes of objects to work queue keys. Level-triggered: a key names the object to
// reconcile, not the change. Delays and coalesces changes that affect many warmups or come in
// bursts. Bounds the plans that changes of pods cause (StormLimiter).
class Triggers {
 public:
  // `cluster`, `clock` and the queues must outlive this object; this object must outlive the
  // threads of `cluster`.
  Triggers(ClusterCache& cluster, Queues queues, std::string agent_namespace, const Clock& clock)
      : cluster_(cluster),
        queues_(queues),
        agent_namespace_(std::move(agent_namespace)),
        clock_(clock) {}

  // Call before ClusterCache::Start().
  void Attach();
  // Queues every object. Call when this replica becomes the leader.
  void AddEverything();

 private:
  void OnWarmup(const kube::Change& change);
  void OnNodeCache(const kube::Change& change);
  void OnNode(const kube::Change& change);
  void OnSlice(const kube::Change& change);
  void OnPod(const kube::Change& change);
  void OnJob(const kube::Change& change);
  void OnWorkload(const kube::Change& change, std::string_view kind);
  void OnNamespace(const kube::Change& change);
  void OnBudget(const kube::Change& change);
  void OnFailure(const kube::Change& change);

  void AddHeldPods();
  // Called when a pod was released. If the pod is in a pod group, queues the other warmups of its
  // namespace that have held pods, because these may be in the same group.
  void AddRestOfGroup(const kube::Change& change);
  void AddNodeToEvict(const codec::Json& pod);
  void AddAllWarmups(Duration delay);
  // Queues the warmups of a namespace for which `matches` returns true.
  template <typename Predicate>
  void AddWarmupsOf(const std::string& ns, Duration delay, Predicate matches);
  std::set<std::string> KeysByUid(const std::string& warmup_uid) const;
  void AddByUid(const std::string& warmup_uid, Duration delay);

  ClusterCache& cluster_;
  Queues queues_;
  std::string agent_namespace_;
  const Clock& clock_;
  StormLimiter pod_limiter_;  // used by the thread that watches pods
};

}  // namespace cachewarm::observe
