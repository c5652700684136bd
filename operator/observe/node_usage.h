// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <shared_mutex>
#include <string>

#include "lib/kube/core/object.h"
#include "lib/kube/runtime/store.h"

namespace cachewarm::observe {

// Resource name → amount, in the units of api::Node::allocatable; "pods" counts pods.
using Amounts = std::map<std::string, int64_t>;

// What the pods bound to each node ask for, kept up to date change by change, because summing up
// 10,000 pods for every look would cost more than the look. Pods that have ended count nothing.
// Fed by the pod reflector's OnChange(); any thread reads.
class NodeUsage {
 public:
  void Take(const kube::Change& change);

  // Empty for a node without pods.
  Amounts Of(const std::string& node) const;
  // Nodes that have pods.
  size_t nodes() const;

 private:
  // Most pods ask for the same as many others.
  using Shared = std::map<Amounts, int64_t>;  // by how many pods
  struct Share {
    std::string node;
    Shared::iterator amounts;
  };

  void Forget(const std::string& uid);

  mutable std::shared_mutex mutex_;
  Shared shared_;
  std::map<std::string, Share> by_uid_;
  std::map<std::string, Amounts> by_node_;
};

}  // namespace cachewarm::observe
