// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/store.h"

#include <utility>

#include "lib/codec/json_value.h"

namespace cachewarm::kube {
namespace {

bool IsSame(const Object& a, const Object& b) {
  const std::string version = ResourceVersionOf(*a);
  return !version.empty() && version == ResourceVersionOf(*b) && UidOf(*a) == UidOf(*b);
}

}  // namespace

Object Store::Get(const ObjectName& name) const {
  std::shared_lock lock(mutex_);
  const auto found = objects_.find(name);
  return found == objects_.end() ? nullptr : found->second;
}

std::vector<Object> Store::List() const {
  std::shared_lock lock(mutex_);
  std::vector<Object> listed;
  listed.reserve(objects_.size());
  for (const auto& [name, object] : objects_) {
    listed.push_back(object);
  }
  return listed;
}

std::vector<Object> Store::ListNamespace(std::string_view ns) const {
  std::shared_lock lock(mutex_);
  std::vector<Object> listed;
  const ObjectName first{.ns = std::string(ns), .name = {}};
  for (auto at = objects_.lower_bound(first); at != objects_.end() && at->first.ns == ns; ++at) {
    listed.push_back(at->second);
  }
  return listed;
}

std::vector<Object> Store::ByIndex(const std::string& value) const {
  std::shared_lock lock(mutex_);
  std::vector<Object> listed;
  if (const auto found = by_index_.find(value); found != by_index_.end()) {
    for (const auto& [name, object] : found->second) {
      listed.push_back(object);
    }
  }
  return listed;
}

size_t Store::size() const {
  std::shared_lock lock(mutex_);
  return objects_.size();
}

bool Store::AwaitSynced(const Clock& clock, MonoTime deadline, std::stop_token stop) const {
  std::unique_lock lock(sync_mutex_);
  while (!HasSynced() && !stop.stop_requested() && clock.Monotonic() < deadline) {
    clock.WaitUntil(lock, sync_wake_, deadline, stop);
  }
  return HasSynced();
}

void Store::NoteSynced() {
  std::lock_guard lock(sync_mutex_);
  synced_ = true;
  sync_wake_.notify_all();
}

std::vector<Change> Store::Replace(std::vector<Object> objects) {
  std::unique_lock lock(mutex_);
  std::map<ObjectName, Object> before = std::exchange(objects_, {});
  by_index_.clear();
  std::vector<Change> changes;
  for (Object& object : objects) {
    const ObjectName name = NameOf(*object);
    const auto known = before.find(name);
    if (known == before.end()) {
      Insert(name, object);
      changes.push_back({.before = nullptr, .after = std::move(object)});
      continue;
    }
    const bool same = IsSame(known->second, object);
    Insert(name, same ? known->second : object);
    if (!same) {
      changes.push_back({.before = std::move(known->second), .after = std::move(object)});
    }
    before.erase(known);
  }
  for (auto& [name, object] : before) {
    changes.push_back({.before = std::move(object), .after = nullptr});
  }
  NoteSynced();
  return changes;
}

Change Store::Put(const Object& object) {
  const ObjectName name = NameOf(*object);
  std::unique_lock lock(mutex_);
  Change change{.before = Erase(name), .after = object};
  Insert(name, object);
  return change;
}

Change Store::Remove(const ObjectName& name) {
  std::unique_lock lock(mutex_);
  return {.before = Erase(name), .after = nullptr};
}

void Store::Insert(const ObjectName& name, const Object& object) {
  objects_[name] = object;
  if (index_) {
    for (const std::string& value : index_(*object)) {
      by_index_[value][name] = object;
    }
  }
}

Object Store::Erase(const ObjectName& name) {
  const auto found = objects_.find(name);
  if (found == objects_.end()) {
    return nullptr;
  }
  Object erased = std::move(found->second);
  objects_.erase(found);
  if (index_) {
    for (const std::string& value : index_(*erased)) {
      const auto at = by_index_.find(value);
      if (at != by_index_.end() && at->second.erase(name) > 0 && at->second.empty()) {
        by_index_.erase(at);
      }
    }
  }
  return erased;
}

}  // namespace cachewarm::kube
