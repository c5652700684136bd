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
  Share share{.node = pod->node, .amounts = std::move(pod->requests)};
  share.amounts["pods"] = 1;
  Amounts& total = by_node_[share.node];
  for (const auto& [name, amount] : share.amounts) {
    total[name] += amount;
  }
  by_uid_[uid] = std::move(share);
}

void NodeUsage::Forget(const std::string& uid) {
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end()) {
    return;
  }
  const auto node = by_node_.find(found->second.node);
  for (const auto& [name, amount] : found->second.amounts) {
    node->second[name] -= amount;
  }
  if (node->second["pods"] == 0) {
    by_node_.erase(node);
  }
  by_uid_.erase(found);
}

Amounts NodeUsage::Of(const std::string& node) const {
  std::shared_lock lock(mutex_);
  const auto found = by_node_.find(node);
  return found == by_node_.end() ? Amounts{} : found->second;
}

std::map<std::string, Amounts> NodeUsage::All() const {
  std::shared_lock lock(mutex_);
  return by_node_;
}

}  // namespace cachewarm::observe
