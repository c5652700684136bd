// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "lib/base/clock.h"
#include "lib/codec/packed.h"
#include "lib/kube/core/object.h"

namespace cachewarm::kube {

// One change of a store. `before` is null for a new object, `after` for one that is gone.
struct Change {
  Object before;
  Object after;
  const codec::Json& object() const { return after != nullptr ? *after : *before; }
};

// An object as a store keeps it: packed, because a tree of each of 10,000 pods would be 200 MB.
// value() looks at a few members, Unpack() makes the tree. Never changes; the same pointer means
// the same version of the same object.
class CachedObject {
 public:
  explicit CachedObject(codec::Packed packed);

  ObjectName name() const { return {.ns = std::string(ns_), .name = std::string(name_)}; }
  std::string_view ns() const { return ns_; }
  // Below its namespace.
  std::string_view own_name() const { return name_; }
  codec::PackedValue value() const { return packed_.value(); }
  std::string_view uid() const { return value().TextAt({"metadata", "uid"}); }
  // The value of a label; empty when there is none.
  std::string_view label(std::string_view key) const {
    return value().TextAt({"metadata", "labels", key});
  }
  Object Unpack() const;

 private:
  codec::Packed packed_;
  std::string_view ns_;  // in packed_
  std::string_view name_;
};
using CachedObjectPtr = std::shared_ptr<const CachedObject>;

// Orders what is kept by namespace and name, and finds it by them: a name need not be kept twice.
struct ByName {
  using is_transparent = void;
  using Name = std::pair<std::string_view, std::string_view>;
  static Name NameOf(const ObjectName& name) { return {name.ns, name.name}; }
  static Name NameOf(const CachedObjectPtr& object) { return {object->ns(), object->own_name()}; }
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    return NameOf(a) < NameOf(b);
  }
};

// As Change, packed.
struct CachedChange {
  CachedObjectPtr before;
  CachedObjectPtr after;
  Change Unpack() const;
};

// The objects of one kind as last seen. One reflector writes, any thread reads. What it hands out
// never changes and stays valid. Readers never see half of a list: the first list and every relist
// are swapped in whole.
class Store {
 public:
  // Texts under which an object is found by ByIndex(), e.g. the node a pod is bound to.
  using IndexFunction = std::function<std::vector<std::string>(const codec::Json&)>;

  // Stores that share a table keep once what their objects have in common; null: one of its own.
  explicit Store(IndexFunction index = nullptr, std::shared_ptr<codec::PackTable> table = nullptr);

  // Taken apart for the caller: for one object, not for each of thousands.
  Object Get(const ObjectName& name) const;

  CachedObjectPtr Find(const ObjectName& name) const;
  // In the order of namespace and name.
  std::vector<CachedObjectPtr> List() const;
  std::vector<CachedObjectPtr> ListNamespace(std::string_view ns) const;
  std::vector<CachedObjectPtr> ByIndex(const std::string& value) const;
  size_t size() const;
  // True once a whole list was taken in, and for ever after.
  bool HasSynced() const { return synced_.load(); }
  // Blocks until HasSynced(); false when `deadline` of `clock` or `stop` came first.
  bool AwaitSynced(const Clock& clock, MonoTime deadline, std::stop_token stop) const;

  // For the reflector, and for tests: Replace() returns what changed, deletions that a list reveals
  // included.
  CachedObjectPtr Pack(const codec::Json& object) const;
  std::vector<CachedChange> Replace(std::vector<CachedObjectPtr> objects);
  CachedChange Put(const codec::Json& object);
  CachedChange Remove(const ObjectName& name);

 private:
  using Objects = absl::btree_set<CachedObjectPtr, ByName>;  // a third of what a std::set takes

  void Insert(const CachedObjectPtr& object);
  CachedObjectPtr Erase(const ObjectName& name);
  void NoteSynced();

  IndexFunction index_;
  std::shared_ptr<codec::PackTable> table_;
  mutable std::shared_mutex mutex_;
  Objects objects_;
  std::map<std::string, Objects> by_index_;
  std::atomic<bool> synced_{false};
  mutable std::mutex sync_mutex_;
  mutable std::condition_variable_any sync_wake_;
};

}  // namespace cachewarm::kube
