// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
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

// The objects of a store as values, decoded when they are first looked at and kept until they
// change: a snapshot of 5,000 nodes is then a copy of pointers. Never behind its store.
// Thread-safe. An object that cannot be decoded is left out and logged once per version of it.
template <typename T>
class Decoded {
 public:
  using Decode = std::function<absl::StatusOr<T>(const kube::Object&)>;
  using Value = std::shared_ptr<const T>;

  // `store` and `log` must outlive it. `kind` is for the log.
  Decoded(std::string kind, const kube::Store& store, Decode decode, Log& log)
      : kind_(std::move(kind)), store_(store), decode_(std::move(decode)), log_(log) {}

  // Null: no such object, or not understood.
  Value Get(const kube::ObjectName& name) const { return Of(store_.Get(name)); }

  // In the order of namespace and name.
  std::vector<Value> List() const { return Of(store_.List()); }
  std::vector<Value> ListNamespace(std::string_view ns) const {
    return Of(store_.ListNamespace(ns));
  }

  // The values of objects that the store gave out.
  std::vector<Value> Of(const std::vector<kube::Object>& objects) const {
    std::vector<Value> values;
    values.reserve(objects.size());
    for (const kube::Object& object : objects) {
      if (Value value = Of(object); value != nullptr) {
        values.push_back(std::move(value));
      }
    }
    return values;
  }

  Value Of(const kube::Object& object) const {
    if (object == nullptr) {
      return nullptr;
    }
    const kube::ObjectName name = kube::NameOf(*object);
    {
      std::lock_guard lock(mutex_);
      const auto known = known_.find(name);
      if (known != known_.end() && known->second.object == object) {
        return known->second.value;
      }
    }
    Value value = Make(name, object);
    std::lock_guard lock(mutex_);
    known_[name] = {object, value};
    return value;
  }

  // For the reflector's OnChange(): lets go of what is gone.
  void Take(const kube::Change& change) {
    if (change.after == nullptr) {
      std::lock_guard lock(mutex_);
      known_.erase(kube::NameOf(*change.before));
    }
  }

 private:
  struct Entry {
    kube::Object object;
    Value value;
  };

  Value Make(const kube::ObjectName& name, const kube::Object& object) const {
    auto decoded = decode_(object);
    if (decoded.ok()) {
      return std::make_shared<const T>(*std::move(decoded));
    }
    log_.Warning(
        "object not understood",
        {{"kind", kind_}, {"name", name.ToString()}, {"error", Message(decoded.status())}});
    return nullptr;
  }

  std::string kind_;
  const kube::Store& store_;
  Decode decode_;
  Log& log_;
  mutable std::mutex mutex_;
  mutable std::map<kube::ObjectName, Entry> known_;
};

}  // namespace cachewarm::observe
