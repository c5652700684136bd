// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/steps/context.h"
#include "agent/sync/inventory.h"

namespace cachewarm::agent {

// Which trees file events are recorded of: the active one of every mount, and those that were
// active lately, because pods go on using what they mounted. One thread.
class WatchedTrees {
 public:
  explicit WatchedTrees(const Context& context) : context_(context) {}

  // Before a link is flipped, so that no pod is faster than the watch. `fresh`: no link has led
  // to the tree yet.
  void Add(const Mount& mount, const std::string& generation, bool fresh);
  // Before a step makes a tree of the same name: those that somebody removed from the disk. True
  // when there were some.
  bool ForgetGone(const Inventory& inventory);
  // Once a turn.
  void Update(const Inventory& inventory);
  // Those that were active at some time in the last `within`.
  std::vector<std::string> ActiveWithin(Duration within) const;

 private:
  const Context& context_;
  std::map<std::string, MonoTime> last_active_;  // by generation
};

}  // namespace cachewarm::agent
