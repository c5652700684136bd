// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/store.h"

#include <utility>

#include "lib/codec/json_value.h"

namespace cachewarm::kube {
namespace {

bool IsSame(const CachedObject& a, const CachedObject& b) {
  const auto version = [](const CachedObject& object) {
    return object.value().TextAt({"metadata", "resourceVersion"});
  };
  return !version(a).empty() && version(a) == version(b) && a.uid() == b.uid();
}

Object Tree(const CachedObjectPtr& kept) {
  return kept == nullptr ? nullptr : kept->Unpack();
}

}  // namespace

CachedObject::CachedObject(codec::PackedJson packed)
    : packed_(std::move(packed)),
      ns_(value().TextAt({"metadata", "namespace"})),
      name_(value().TextAt({"metadata", "name"})) {}

Object CachedObject::Unpack() const {
  return std::make_shared<const codec::Json>(packed_.Unpack());
}

Change CachedChange::Unpack() const {
  return {.before = Tree(before), .after = Tree(after)};
}

Store::Store(IndexFunction index, std::shared_ptr<codec::PackTable> table)
    : index_(std::move(index)),
      table_(table != nullptr ? std::move(table) : codec::PackTable::Make()) {}

Object Store::Get(const ObjectName& name) const {
  return Tree(Find(name));
}

CachedObjectPtr Store::Find(const ObjectName& name) const {
  std::shared_lock lock(mutex_);
  const auto found = objects_.find(name);
  return found == objects_.end() ? nullptr : *found;
}

std::vector<CachedObjectPtr> Store::List() const {
  std::shared_lock lock(mutex_);
  return {objects_.begin(), objects_.end()};
}

std::vector<CachedObjectPtr> Store::ListNamespace(std::string_view ns) const {
  std::shared_lock lock(mutex_);
  std::vector<CachedObjectPtr> listed;
  const ObjectName first{.ns = std::string(ns), .name = {}};
  for (auto at = objects_.lower_bound(first); at != objects_.end() && (*at)->ns() == ns; ++at) {
    listed.push_back(*at);
  }
  return listed;
}

std::vector<CachedObjectPtr> Store::ByIndex(const std::string& value) const {
  std::shared_lock lock(mutex_);
  const auto found = by_index_.find(value);
  return found == by_index_.end()
             ? std::vector<CachedObjectPtr>()
             : std::vector<CachedObjectPtr>(found->second.begin(), found->second.end());
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

void Store::MarkSynced() {
  std::lock_guard lock(sync_mutex_);
  synced_ = true;
  sync_wake_.notify_all();
}

CachedObjectPtr Store::Pack(const codec::Json& object) const {
  return std::make_shared<const CachedObject>(table_->Pack(object));
}

std::vector<CachedChange> Store::Replace(std::vector<CachedObjectPtr> objects) {
  std::unique_lock lock(mutex_);
  Objects before = std::exchange(objects_, {});
  by_index_.clear();
  std::vector<CachedChange> changes;
  for (CachedObjectPtr& object : objects) {
    Erase(object->name());  // pages of one list may overlap; the later item is newer
    const auto known = before.find(object);
    if (known == before.end()) {
      Insert(object);
      changes.push_back({.before = nullptr, .after = std::move(object)});
      continue;
    }
    const bool same = IsSame(**known, *object);
    Insert(same ? *known : object);
    if (!same) {
      changes.push_back({.before = *known, .after = std::move(object)});
    }
    before.erase(known);
  }
  for (const CachedObjectPtr& object : before) {
    changes.push_back({.before = object, .after = nullptr});
  }
  MarkSynced();
  return changes;
}

CachedChange Store::Put(const codec::Json& object) {
  CachedObjectPtr kept = Pack(object);
  std::unique_lock lock(mutex_);
  CachedChange change{.before = Erase(kept->name()), .after = kept};
  Insert(kept);
  return change;
}

CachedChange Store::Remove(const ObjectName& name) {
  std::unique_lock lock(mutex_);
  return {.before = Erase(name), .after = nullptr};
}

void Store::Insert(const CachedObjectPtr& object) {
  objects_.insert(object);
  if (index_) {
    for (const std::string& value : index_(object->value().Unpack())) {
      by_index_[value].insert(object);
    }
  }
}

CachedObjectPtr Store::Erase(const ObjectName& name) {
  const auto found = objects_.find(name);
  if (found == objects_.end()) {
    return nullptr;
  }
  CachedObjectPtr erased = *found;
  objects_.erase(found);
  if (index_) {
    for (const std::string& value : index_(erased->value().Unpack())) {
      const auto at = by_index_.find(value);
      if (at != by_index_.end() && at->second.erase(erased) > 0 && at->second.empty()) {
        by_index_.erase(at);
      }
    }
  }
  return erased;
}

}  // namespace cachewarm::kube
