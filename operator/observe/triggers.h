// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/kube/runtime/work_queue.h"
#include "operator/observe/cluster_cache.h"

namespace cachewarm::observe {

struct Queues {
  kube::WorkQueue& warmups;  // "ns/name" of a CacheWarmup, also of one that is gone
  kube::WorkQueue& nodes;    // node name
  kube::WorkQueue& held;     // "ns/name" of a pod that waits at our gate
};

// Which keys a change concerns. Level-based: a key says where to look, never what happened. Changes
// that concern many warmups, or come in bursts, are coalesced by a short delay.
class Triggers {
 public:
  // Both must outlive it; it must outlive the cluster's threads.
  Triggers(ClusterCache& cluster, Queues queues) : cluster_(cluster), queues_(queues) {}

  // Before ClusterCache::Start().
  void Attach();
  // Looks at everything: when this process begins to lead.
  void AddEverything();

 private:
  void OnWarmup(const kube::Change& change);
  void OnNodeCache(const kube::Change& change);
  void OnNode(const kube::Change& change);
  void OnPod(const kube::Change& change);
  void OnJob(const kube::Change& change);
  void OnWorkload(const kube::Change& change, std::string_view kind);
  void OnNamespace(const kube::Change& change);
  void OnBudget(const kube::Change& change);
  void OnFailure(const kube::Change& change);

  void AddHeldPods();
  // Of a pod that is not held any more: warmups that hold other members of its group.
  void AddRestOfGroup(const kube::Change& change);
  void AddAllWarmups(Duration delay);
  // Warmups of a namespace that `matches` returns true for.
  template <typename Predicate>
  void AddWarmupsOf(const std::string& ns, Duration delay, Predicate matches);
  std::set<std::string> KeysByUid(const std::string& warmup_uid) const;
  void AddByUid(const std::string& warmup_uid, Duration delay);

  ClusterCache& cluster_;
  Queues queues_;
};

}  // namespace cachewarm::observe
