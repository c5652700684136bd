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

// One change of an object in a store. `before` is null for a new object, `after` for a deleted one.
struct Change {
  Object before;
  Object after;
  const codec::Json& object() const { return after != nullptr ? *after : *before; }
};

// A stored object: packed, because the JSON trees of 10,000 pods would take 200 MB. value() reads a
// few members, Unpack() builds the tree. Immutable; equal pointers mean the same version of the
// same object.
class CachedObject {
 public:
  explicit CachedObject(codec::PackedJson packed);

  ObjectName name() const { return {.ns = std::string(ns_), .name = std::string(name_)}; }
  std::string_view ns() const { return ns_; }
  // Returns the name without the namespace.
  std::string_view own_name() const { return name_; }
  codec::PackedValue value() const { return packed_.value(); }
  std::string_view uid() const { return value().TextAt({"metadata", "uid"}); }
  // Returns the value of a label; empty if there is none.
  std::string_view label(std::string_view key) const {
    return value().TextAt({"metadata", "labels", key});
  }
  Object Unpack() const;

 private:
  codec::PackedJson packed_;
  std::string_view ns_;  // ns_ and name_ are views into packed_
  std::string_view name_;
};
using CachedObjectPtr = std::shared_ptr<const CachedObject>;

// Orders and finds objects by their own namespace and name, so that no copies are needed as keys.
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

// Like Change, with packed objects.
struct CachedChange {
  CachedObjectPtr before;
  CachedObjectPtr after;
  Change Unpack() const;
};

// The last observed objects of one kind. One reflector writes, any thread reads. Returned objects
// are immutable and stay valid. A new list becomes visible to readers as a whole.
class Store {
 public:
  // Returns the texts under which ByIndex() finds an object, e.g. the node that a pod is bound to.
  using IndexFunction = std::function<std::vector<std::string>(const codec::Json&)>;

  // Stores with the same `table` share the memory of common parts of their objects; null: the store
  // has a table of its own.
  explicit Store(IndexFunction index = nullptr, std::shared_ptr<codec::PackTable> table = nullptr);

  // Returns an object as a JSON tree. Use it for single objects, not for thousands.
  Object Get(const ObjectName& name) const;

  CachedObjectPtr Find(const ObjectName& name) const;
  // Returns all objects, ordered by namespace and name.
  std::vector<CachedObjectPtr> List() const;
  std::vector<CachedObjectPtr> ListNamespace(std::string_view ns) const;
  std::vector<CachedObjectPtr> ByIndex(const std::string& value) const;
  size_t size() const;
  // Returns true after a complete list has been stored, and always from then on.
  bool HasSynced() const { return synced_.load(); }
  // Blocks until HasSynced(). Returns false if `clock` reaches `deadline` or `stop` is requested
  // earlier.
  bool AwaitSynced(const Clock& clock, MonoTime deadline, std::stop_token stop) const;

  // For the reflector and tests. Replace() returns the changes, including deletions of objects that
  // the new list lacks.
  CachedObjectPtr Pack(const codec::Json& object) const;
  std::vector<CachedChange> Replace(std::vector<CachedObjectPtr> objects);
  CachedChange Put(const codec::Json& object);
  CachedChange Remove(const ObjectName& name);

 private:
  using Objects = absl::btree_set<CachedObjectPtr, ByName>;  // a third of the memory of a std::set

  void Insert(const CachedObjectPtr& object);
  CachedObjectPtr Erase(const ObjectName& name);
  void MarkSynced();

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
