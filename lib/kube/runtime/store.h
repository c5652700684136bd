// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/kube/core/object.h"

namespace cachewarm::kube {

// One change of a store. `before` is null for a new object, `after` for one that is gone.
struct Change {
  Object before;
  Object after;
  const codec::Json& object() const { return after != nullptr ? *after : *before; }
};

// The objects of one kind as last seen. One reflector writes, any thread reads. What it hands out
// never changes and stays valid. Readers never see half of a list: the first list and every relist
// are swapped in whole.
class Store {
 public:
  // Texts under which an object is found by ByIndex(), e.g. the node a pod is bound to.
  using IndexFunction = std::function<std::vector<std::string>(const codec::Json&)>;

  explicit Store(IndexFunction index = nullptr) : index_(std::move(index)) {}

  Object Get(const ObjectName& name) const;
  // In the order of namespace and name.
  std::vector<Object> List() const;
  std::vector<Object> ListNamespace(std::string_view ns) const;
  std::vector<Object> ByIndex(const std::string& value) const;
  size_t size() const;
  // True once a whole list was taken in, and for ever after.
  bool HasSynced() const { return synced_.load(); }
  // Blocks until HasSynced(); false when `deadline` of `clock` or `stop` came first.
  bool AwaitSynced(const Clock& clock, MonoTime deadline, std::stop_token stop) const;

  // For the reflector, and for tests: returns what changed, deletions that a list reveals included.
  std::vector<Change> Replace(std::vector<Object> objects);
  Change Put(const Object& object);
  Change Remove(const ObjectName& name);

 private:
  void Insert(const ObjectName& name, const Object& object);
  Object Erase(const ObjectName& name);
  void NoteSynced();

  IndexFunction index_;
  mutable std::shared_mutex mutex_;
  std::map<ObjectName, Object> objects_;
  std::map<std::string, std::map<ObjectName, Object>> by_index_;
  std::atomic<bool> synced_{false};
  mutable std::mutex sync_mutex_;
  mutable std::condition_variable_any sync_wake_;
};

}  // namespace cachewarm::kube
