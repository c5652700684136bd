// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/namespace_lanes.h"

#include <algorithm>

namespace cachewarm::kube {
namespace {

// Time after which a slow namespace counts as usual again without a fast key, because its keys may
// be gone.
constexpr Duration kForgetAfter = std::chrono::minutes(10);

std::string_view NamespaceOfKey(std::string_view key) {
  const size_t name = key.rfind('/');
  if (name == std::string_view::npos) {
    return "";
  }
  const std::string_view rest = key.substr(0, name);
  return rest.substr(rest.rfind('/') + 1);  // npos + 1 is 0
}

}  // namespace

NamespaceLanes::Groups::iterator NamespaceLanes::Find(std::string_view key) {
  return groups_.find(NamespaceOfKey(key));
}

void NamespaceLanes::Add(const std::string& key) {
  groups_[std::string(NamespaceOfKey(key))].waiting.emplace_back(arrivals_++, key);
  ++waiting_;
}

void NamespaceLanes::Update(MonoTime now) {
  for (const auto& [key, began] : began_) {
    if (now - began >= kSlowAfter) {
      Find(key)->second.slow_since = now;
    }
  }
  for (auto& [ns, group] : groups_) {
    if (group.slow_since.has_value() && now - *group.slow_since >= kForgetAfter) {
      group.slow_since.reset();
    }
  }
  std::erase_if(groups_, [](const auto& each) {
    const Group& group = each.second;
    return group.waiting.empty() && group.processed == 0 && !group.slow_since.has_value();
  });
}

std::optional<std::string> NamespaceLanes::Take(MonoTime now) {
  Update(now);
  size_t usual = 0;
  size_t slow = 0;
  size_t sharing = 0;
  for (const auto& [ns, group] : groups_) {
    (group.slow_since.has_value() ? slow : usual) += group.processed;
    const bool has_keys = !group.waiting.empty() || group.processed > 0;
    sharing += group.slow_since.has_value() && has_keys ? 1U : 0U;
  }
  const size_t share = std::max<size_t>(
      1, std::min(lanes_.slow - lanes_.slow / 4, lanes_.slow / std::max<size_t>(1, sharing)));
  Group* first = nullptr;
  for (auto& [ns, group] : groups_) {
    const bool may_begin = group.slow_since.has_value()
                               ? slow < lanes_.slow && group.processed < share
                               : usual < lanes_.usual;
    if (may_begin && !group.waiting.empty() &&
        (first == nullptr || group.waiting.front().first < first->waiting.front().first)) {
      first = &group;
    }
  }
  if (first == nullptr) {
    return std::nullopt;
  }
  std::string key = std::move(first->waiting.front().second);
  first->waiting.pop_front();
  ++first->processed;
  --waiting_;
  began_[key] = now;
  return key;
}

void NamespaceLanes::Done(const std::string& key, MonoTime now, bool ok) {
  const auto began = began_.find(key);
  if (began == began_.end()) {
    return;
  }
  Group& group = Find(key)->second;
  --group.processed;
  if (now - began->second >= kSlowAfter) {
    group.slow_since = now;
  } else if (ok) {
    group.slow_since.reset();
  }
  began_.erase(began);
}

std::optional<MonoTime> NamespaceLanes::NextChange() const {
  std::optional<MonoTime> next;
  for (const auto& [key, began] : began_) {
    const auto group = groups_.find(NamespaceOfKey(key));
    if (waiting_ > 0 && !group->second.slow_since.has_value()) {
      next = std::min(next.value_or(began + kSlowAfter), began + kSlowAfter);
    }
  }
  return next;
}

}  // namespace cachewarm::kube
