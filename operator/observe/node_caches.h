// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "lib/api/node_cache.h"
#include "lib/base/log.h"
#include "lib/kube/runtime/store.h"

namespace cachewarm::observe {

// A warmup as listed in spec.warmups of a NodeCache.
struct NamedWarmup {
  std::string ns;
  std::string name;
  std::string uid;
  friend auto operator<=>(const NamedWarmup&, const NamedWarmup&) = default;
};

// The NodeCaches, decoded for one warmup at a time: with 5,000 nodes and 20 warmups, all decoded
// entries would take 100 MB, and one plan needs only the entries of its own warmup. Keeps no
// decoded values. The reflector's OnChange() reports every change. Thread-safe.
class NodeCaches {
 public:
  using Value = std::shared_ptr<const api::NodeCache>;

  // `store` and `log` must outlive this object.
  NodeCaches(const kube::Store& store, Log& log) : store_(store), log_(log) {}

  // Returns null if the NodeCache does not exist or cannot be decoded.
  Value Get(const std::string& node) const;
  // Returns the NodeCache with only some entries in spec.warmups and status.warmups: those of
  // `warmup_uid`, and those of warmups whose fetch is pending on this node, because fetch slots are
  // counted over all warmups (operator/plan/fetching/fetch_slots.h).
  Value ShareOf(const std::string& warmup_uid, const std::string& node) const;

  // Returns the number of entries in spec.warmups.
  size_t CountOf(const std::string& node) const;

  // Returns every warmup that some NodeCache lists.
  std::set<NamedWarmup> Named() const;
  // Returns the uids under which NodeCaches list warmups of this namespace and name.
  std::vector<std::string> UidsOf(const std::string& ns, const std::string& name) const;

  void Apply(const kube::Change& change);

 private:
  Value Decode(const std::string& node, const codec::Json& object) const;

  const kube::Store& store_;
  Log& log_;
  mutable std::mutex mutex_;
  std::map<NamedWarmup, int64_t> named_;  // number of NodeCaches that list it
  std::map<std::string, std::set<std::string>>
      pending_;  // by node: uids of warmups with pending bundles
  mutable std::map<std::string, std::string>
      undecodable_;  // by node: resourceVersion for which the error was logged
};

}  // namespace cachewarm::observe
