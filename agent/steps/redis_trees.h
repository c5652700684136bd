// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "agent/steps/tables.h"
#include "agent/steps/watched_trees.h"
#include "agent/sync/inventory.h"

namespace cachewarm::agent {

// Selects the trees that need a Redis endpoint: the active trees of warmups that select the preset
// torchinductor-redis. A tree stays selected while its file events are recorded (WatchedTrees),
// because running pods keep using it. Call on one thread.
class RedisTrees {
 public:
  // Both arguments must outlive this object.
  RedisTrees(const Tables& tables, const WatchedTrees& watched)
      : tables_(tables), watched_(watched) {}

  // Returns the selected trees, as paths below the root. Call once per iteration, after
  // WatchedTrees::Update().
  std::set<std::string> Update(const Inventory& inventory);

 private:
  const Tables& tables_;
  const WatchedTrees& watched_;
  std::set<std::string> generations_;
};

}  // namespace cachewarm::agent
