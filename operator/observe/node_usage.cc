// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/node_usage.h"

#include <mutex>
#include <utility>

namespace cachewarm::observe {

NodeUsage::Share NodeUsage::ShareOf(const kube::Object& object) {
  auto pod = api::DecodePod(object);
  if (!pod.ok() || api::HasEnded(*pod)) {
    return {};
  }
  pod->requests["pods"] = 1;
  return {.node = std::move(pod->node), .amounts = std::move(pod->requests)};
}

void NodeUsage::Apply(const kube::Change& change) {
  const Share before = ShareOf(change.before);
  const Share after = ShareOf(change.after);
  std::unique_lock lock(mutex_);
  Add(before, -1);
  Add(after, 1);
}

void NodeUsage::Add(const Share& share, int64_t times) {
  if (share.node.empty()) {
    return;
  }
  api::Resources& total = by_node_[share.node];
  for (const auto& [name, amount] : share.amounts) {
    total[name] += times * amount;
  }
  if (total["pods"] == 0) {
    by_node_.erase(share.node);
  }
}

api::Resources NodeUsage::Of(const std::string& node) const {
  std::shared_lock lock(mutex_);
  const auto found = by_node_.find(node);
  return found == by_node_.end() ? api::Resources{} : found->second;
}

size_t NodeUsage::nodes() const {
  std::shared_lock lock(mutex_);
  return by_node_.size();
}

}  // namespace cachewarm::observe
