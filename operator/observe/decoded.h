// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/kube/core/object.h"
#include "lib/kube/runtime/store.h"

namespace cachewarm::observe {

// Decodes the objects of a store on first use and caches the values until the objects change, so
// that a snapshot of 5,000 nodes copies only pointers. Never returns an older value than the store
// holds. Omits an object that cannot be decoded and logs a warning once per version of it.
// Thread-safe.
//
// Caches at most `values_max` values. When the cache is full, drops all of them and decodes again
// on use. A value in use (by a snapshot) stays alive.
template <typename T>
class Decoded {
 public:
  using Decode = std::function<absl::StatusOr<T>(const kube::Object&)>;
  using Value = std::shared_ptr<const T>;

  // `store` and `log` must outlive this object. `kind` is used in log lines.
  Decoded(std::string kind, const kube::Store& store, Decode decode, Log& log,
          size_t values_max = std::numeric_limits<size_t>::max())
      : kind_(std::move(kind)),
        store_(store),
        decode_(std::move(decode)),
        log_(log),
        values_max_(values_max) {}

  // Returns null if the object does not exist or cannot be decoded.
  Value Get(const kube::ObjectName& name) const { return Of(store_.Find(name)); }

  // Returns the values ordered by namespace and name.
  std::vector<Value> List() const { return Of(store_.List()); }
  std::vector<Value> ListNamespace(std::string_view ns) const {
    return Of(store_.ListNamespace(ns));
  }

  // Returns the values of these objects, which must be from the store.
  std::vector<Value> Of(const std::vector<kube::CachedObjectPtr>& objects) const {
    std::vector<Value> values;
    values.reserve(objects.size());
    for (const kube::CachedObjectPtr& object : objects) {
      if (Value value = Of(object); value != nullptr) {
        values.push_back(std::move(value));
      }
    }
    return values;
  }

  Value Of(const kube::CachedObjectPtr& object) const {
    if (object == nullptr) {
      return nullptr;
    }
    {
      std::lock_guard lock(mutex_);
      const auto known = known_.find(object);
      if (known != known_.end() && known->first == object) {
        return known->second;
      }
    }
    Value value = Make(*object);
    std::lock_guard lock(mutex_);
    if (known_.size() >= values_max_) {
      known_.clear();
    }
    known_.erase(object);  // drops the value of an earlier version
    known_.emplace(object, value);
    return value;
  }

  // Drops the values of deleted objects. The reflector's OnChange() must call this for every
  // change.
  void Apply(const kube::Change& change) {
    if (change.after == nullptr) {
      std::lock_guard lock(mutex_);
      if (const auto gone = known_.find(kube::NameOf(*change.before)); gone != known_.end()) {
        known_.erase(gone);
      }
    }
  }

 private:
  Value Make(const kube::CachedObject& object) const {
    auto decoded = decode_(object.Unpack());
    if (decoded.ok()) {
      return std::make_shared<const T>(*std::move(decoded));
    }
    log_.Warning(
        "cannot decode object",
        {{"kind", kind_}, {"name", object.name().ToString()}, {"err", Message(decoded.status())}});
    return nullptr;
  }

  std::string kind_;
  const kube::Store& store_;
  Decode decode_;
  Log& log_;
  size_t values_max_;
  mutable std::mutex mutex_;
  mutable std::map<kube::CachedObjectPtr, Value, kube::ByName> known_;
};

}  // namespace cachewarm::observe
