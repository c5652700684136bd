// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/node_usage.h"

#include <mutex>

#include "lib/api/kubernetes.h"

namespace cachewarm::observe {
namespace {

bool Occupies(const api::Pod& pod) {
  return !pod.node.empty() && pod.phase != "Succeeded" && pod.phase != "Failed";
}

}  // namespace

void NodeUsage::Take(const kube::Change& change) {
  const std::string uid = kube::UidOf(change.object());
  auto pod = change.after != nullptr ? api::DecodePod(change.after)
                                     : absl::StatusOr<api::Pod>(absl::NotFoundError("gone"));
  std::unique_lock lock(mutex_);
  if (change.before != nullptr) {
    // A pod of the same name may be a new one: what the old one held is free.
    Forget(kube::UidOf(*change.before));
  }
  if (!pod.ok() || !Occupies(*pod)) {
    return;
  }
  Amounts amounts = std::move(pod->requests);
  amounts["pods"] = 1;
  Amounts& total = by_node_[pod->node];
  for (const auto& [name, amount] : amounts) {
    total[name] += amount;
  }
  const auto shared = shared_.try_emplace(std::move(amounts)).first;
  ++shared->second;
  by_uid_.insert_or_assign(uid, Share{.node = pod->node, .amounts = shared});
}

void NodeUsage::Forget(const std::string& uid) {
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end()) {
    return;
  }
  const Share& share = found->second;
  const auto node = by_node_.find(share.node);
  for (const auto& [name, amount] : share.amounts->first) {
    node->second[name] -= amount;
  }
  if (node->second["pods"] == 0) {
    by_node_.erase(node);
  }
  if (--share.amounts->second == 0) {
    shared_.erase(share.amounts);
  }
  by_uid_.erase(found);
}

Amounts NodeUsage::Of(const std::string& node) const {
  std::shared_lock lock(mutex_);
  const auto found = by_node_.find(node);
  return found == by_node_.end() ? Amounts{} : found->second;
}

size_t NodeUsage::nodes() const {
  std::shared_lock lock(mutex_);
  return by_node_.size();
}

}  // namespace cachewarm::observe
