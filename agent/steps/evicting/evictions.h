// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/steps/context.h"
#include "agent/steps/evicting/disk_keeper.h"
#include "agent/steps/watched_trees.h"
#include "agent/sync/eviction.h"

namespace cachewarm::agent {

// Offers trees to the operator and removes those that it confirmed (docs/design/0039-eviction.md).
// Call on the sync thread.
class Evictions {
 public:
  Evictions(const Context& context, WatchedTrees& watched, Duration measure)
      : context_(context), watched_(watched), keeper_(context, measure) {}

  // Updates the disk usage. Call after each scan, whether the spec is known or not. Returns true if
  // the space of evicted trees is free now.
  bool Measure(const Inventory& inventory) { return keeper_.Update(inventory); }

  // Moves an unfinished tree into the trash.
  absl::Status Discard(const std::string& path);

  struct Changes {
    int evicted = 0;            // trees that were removed; scan the disk again
    std::vector<Mount> unlink;  // links to switch to empty trees
  };
  // Updates the offers and removes the confirmed trees. `in_use` are trees that a running step
  // reads. Call after the plan was executed, only while the spec is known.
  Changes Update(const api::NodeCacheSpec& desired, const Inventory& inventory,
                 std::set<std::string> in_use, const DiskAmount& shortage);

  std::vector<api::EvictableTree> Offers() const;
  DiskAmount Total() const { return keeper_.Total(); }
  int64_t evictable_bytes() const { return evictable_bytes_; }
  int64_t evicted_bytes() const { return evicted_bytes_; }

 private:
  void NoteUnlinked(const Inventory& inventory);
  bool Remove(const EvictionOffer& offer, const Inventory& inventory);

  const Context& context_;
  WatchedTrees& watched_;
  DiskKeeper keeper_;
  std::map<std::string, WallTime> first_seen_;  // trees without a link, by name
  std::vector<EvictionOffer> offers_;
  int64_t evictable_bytes_ = 0;
  int64_t evicted_bytes_ = 0;
  std::string logged_;
};

}  // namespace cachewarm::agent
