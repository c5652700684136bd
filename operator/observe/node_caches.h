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

// A warmup as NodeCaches name it in spec.warmups.
struct NamedWarmup {
  std::string ns;
  std::string name;
  std::string uid;
  friend auto operator<=>(const NamedWarmup&, const NamedWarmup&) = default;
};

// The NodeCaches, one warmup's share of them at a time. Each of 5,000 nodes has an entry for each
// of 20 warmups: as values all of them are 100 MB, and a round looks at one warmup's. Nothing
// decoded is kept. Fed by the reflector's OnChange(); any thread reads.
class NodeCaches {
 public:
  using Value = std::shared_ptr<const api::NodeCache>;

  // `store` and `log` must outlive it.
  NodeCaches(const kube::Store& store, Log& log) : store_(store), log_(log) {}

  // Null: none, or not understood.
  Value Get(const std::string& node) const;
  // Without the entries of other warmups than `warmup_uid` in spec.warmups and status.warmups,
  // except those that their agent has not found yet: turns to fetch are counted over all
  // warmups (operator/plan/fetching/fetch_slots.h).
  Value ShareOf(const std::string& warmup_uid, const std::string& node) const;

  // Entries in spec.warmups, of all warmups.
  size_t CountOf(const std::string& node) const;

  // Every warmup that some NodeCache names.
  std::set<NamedWarmup> Named() const;
  // uids under which NodeCaches name warmups of this namespace and name.
  std::vector<std::string> UidsOf(const std::string& ns, const std::string& name) const;

  void Apply(const kube::Change& change);

 private:
  Value Decode(const std::string& node, const codec::Json& object) const;

  const kube::Store& store_;
  Log& log_;
  mutable std::mutex mutex_;
  std::map<NamedWarmup, int64_t> named_;                  // by how many
  std::map<std::string, std::set<std::string>> pending_;  // by node: uids with something unanswered
  mutable std::map<std::string, std::string> undecodable_;  // node → version that was logged
};

}  // namespace cachewarm::observe
