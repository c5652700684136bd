// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <shared_mutex>
#include <string>

#include "lib/api/kubernetes.h"
#include "lib/kube/core/object.h"
#include "lib/kube/runtime/store.h"

namespace cachewarm::observe {

// Keeps, for each node, the number of pods that are bound to it and the sum of their requests.
// Finished pods do not count. The sums are updated at every change of a pod, because summing 10,000
// pods for each plan would cost more than the plan. Thread-safe.
class NodeUsage {
 public:
  // The pod reflector's OnChange() must call this for every change. Reads the pod's earlier
  // requests from `before` of the change, so that they need not be stored.
  void Apply(const kube::Change& change);

  // Returns the requests of the node's pods and, as "pods", their number; empty for a node without
  // pods.
  api::Resources Of(const std::string& node) const;
  // Returns the number of nodes that have pods.
  size_t nodes() const;

 private:
  // Requests of one pod on its node. `node` is empty if the pod is finished or not bound.
  struct Share {
    std::string node;
    api::Resources amounts;
  };
  static Share ShareOf(const kube::Object& pod);
  void Add(const Share& share, int64_t times);

  mutable std::shared_mutex mutex_;
  std::map<std::string, api::Resources> by_node_;
};

}  // namespace cachewarm::observe
