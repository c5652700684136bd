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

// What the pods bound to each node ask for, and how many they are, kept up to date change by
// change, because summing up 10,000 pods for every look would cost more than the look. Pods that
// have ended count nothing. Fed by the pod reflector's OnChange() with every change: what a pod
// took is read from `before` again, not kept. Any thread reads.
class NodeUsage {
 public:
  void Apply(const kube::Change& change);

  // Empty for a node without pods.
  api::Resources Of(const std::string& node) const;
  // Nodes that have pods.
  size_t nodes() const;

 private:
  // What one pod takes of its node; of no node when it takes nothing.
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
