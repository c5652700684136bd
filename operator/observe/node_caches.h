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

// Identifies a warmup that spec.warmups of a NodeCache lists.
struct NamedWarmup {
  std::string ns;
  std::string name;
  std::string uid;
  friend auto operator<=>(const NamedWarmup&, const NamedWarmup&) = default;
};

// Decodes NodeCaches for one warmup at a time and keeps no decoded values. With 5,000 nodes and 20
// warmups, all decoded entries would take 100 MB, and one plan needs only the entries of its own
// warmup. Thread-safe.
class NodeCaches {
 public:
  using Value = std::shared_ptr<const api::NodeCache>;

  // `store` and `log` must outlive this object.
  NodeCaches(const kube::Store& store, Log& log) : store_(store), log_(log) {}

  // Returns null if the NodeCache does not exist or cannot be decoded.
  Value Get(const std::string& node) const;
  // Returns the NodeCache of `node`; null in the same cases as Get(). Its spec.warmups and
  // status.warmups have only the entries that a plan for `warmup_uid` reads: those of that warmup,
  // and those of every warmup with a pending fetch on this node, because fetch slots are counted
  // over all warmups (operator/plan/distribution/fetch_slots.h).
  Value ShareOf(const std::string& warmup_uid, const std::string& node) const;

  // Returns the number of entries in spec.warmups of the node's NodeCache; 0 if there is none.
  size_t CountOf(const std::string& node) const;

  // Returns the warmups that are listed by at least one NodeCache.
  std::set<NamedWarmup> Named() const;
  // Returns the uids of the warmups with this namespace and name that NodeCaches list: several, if
  // the warmup was deleted and created again.
  std::vector<std::string> UidsOf(const std::string& ns, const std::string& name) const;

  // The reflector's OnChange() must call this for every change.
  void Apply(const kube::Change& change);

 private:
  Value Decode(const std::string& node, const codec::Json& object) const;

  const kube::Store& store_;
  Log& log_;
  mutable std::mutex mutex_;
  std::map<NamedWarmup, int64_t> named_;  // number of NodeCaches that list the warmup
  std::map<std::string, std::set<std::string>>
      pending_;  // by node: uids of the warmups of which the node must still fetch a bundle
  mutable std::map<std::string, std::string>
      undecodable_;  // by node: resourceVersion of the NodeCache whose error was logged last
};

}  // namespace cachewarm::observe
