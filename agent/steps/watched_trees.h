// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/steps/context.h"
#include "agent/sync/inventory.h"
#include "lib/api/node_cache.h"

namespace cachewarm::agent {

// Selects the trees whose file events are recorded: the active one of every mount, and recently
// active ones, because running pods keep using the tree that they mounted. Call on one thread.
class WatchedTrees {
 public:
  explicit WatchedTrees(const Context& context) : context_(context) {}

  // Watches a tree. Call before a link is flipped to the tree, so that no pod uses it unwatched.
  // `fresh` means that no link has led to the tree yet.
  void Add(const Mount& mount, const std::string& generation, bool fresh);
  // Forgets trees that another process removed from the disk. Call it before a step makes a tree of
  // the same name: the new tree would otherwise count as watched already. Returns true if it forgot
  // a tree.
  bool ForgetGone(const Inventory& inventory);
  // Forgets a tree that the agent removes.
  void Remove(const std::string& generation);
  // Watches the trees of warmups that harvest (WantedWarmup::harvest) until they are removed: each
  // harvest replaces the active tree, but pods that run for days keep compiling in the tree that
  // they mounted. Call when the spec is known.
  void SetWanted(const std::vector<api::WantedWarmup>& wanted);
  // Updates the watches. Call once per iteration.
  void Update(const Inventory& inventory);
  // Returns the trees that were active during the last `within`.
  std::vector<std::string> ActiveWithin(Duration within) const;
  // Returns the mounts of all watched trees, by generation.
  std::map<std::string, Mount> Mounts() const;

 private:
  struct Watched {
    MonoTime last_active{};
    Mount mount;
  };

  const Context& context_;
  std::map<std::string, Watched> trees_;  // by generation
  std::set<std::string> harvested_;       // uids of warmups that harvest
};

}  // namespace cachewarm::agent
