// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/watched_trees.h"

#include <fmt/format.h>

#include "agent/tree/root_layout.h"
#include "lib/base/status.h"

namespace cachewarm::agent {
namespace {

// A tree is watched for this time after it was last active. A build may take half an hour, and the
// events of its tree are read only when it ends.
constexpr Duration kKeep(7'200'000);

}  // namespace

void WatchedTrees::Add(const Mount& mount, const std::string& generation, bool fresh) {
  const MonoTime now = context_.clock.Monotonic();
  const auto [found, is_new] = trees_.try_emplace(generation, Watched{.mount = mount});
  found->second.last_active = now;
  if (!is_new) {
    return;
  }
  const absl::Status added = context_.watcher.AddTree(
      {.generation = generation,
       .warmup_uid = mount.uid,
       .directory = fmt::format("{}/{}", context_.root.name(), GenerationPath(generation)),
       .run_as = mount.run_as,
       .fresh = fresh});
  if (!added.ok()) {
    context_.log.Warning("cannot watch tree; pod starts in it will be reported as unknown",
                         {{"generation", generation}, {"err", Message(added)}});
  }
}

bool WatchedTrees::ForgetGone(const Inventory& inventory) {
  return std::erase_if(trees_, [&](const auto& each) {
           if (inventory.generations.contains(each.first)) {
             return false;
           }
           context_.watcher.RemoveTree(each.first);
           context_.log.Warning("generation directory removed externally",
                                {{"generation", each.first}});
           return true;
         }) > 0;
}

void WatchedTrees::Remove(const std::string& generation) {
  if (trees_.erase(generation) > 0) {
    context_.watcher.RemoveTree(generation);
  }
}

void WatchedTrees::SetWanted(const std::vector<api::WantedWarmup>& wanted) {
  harvested_.clear();
  for (const api::WantedWarmup& warmup : wanted) {
    if (warmup.harvest) {
      harvested_.insert(warmup.uid);
    }
  }
}

void WatchedTrees::Update(const Inventory& inventory) {
  for (const auto& [mount, link] : inventory.links) {
    if (!link.generation.empty()) {
      Add(mount, link.generation, false);
    }
  }
  const MonoTime now = context_.clock.Monotonic();
  std::erase_if(trees_, [&](const auto& each) {
    if (now - each.second.last_active < kKeep || harvested_.contains(each.second.mount.uid)) {
      return false;
    }
    context_.watcher.RemoveTree(each.first);
    return true;
  });
}

std::vector<std::string> WatchedTrees::ActiveWithin(Duration within) const {
  const MonoTime now = context_.clock.Monotonic();
  std::vector<std::string> generations;
  for (const auto& [generation, tree] : trees_) {
    if (now - tree.last_active <= within) {
      generations.push_back(generation);
    }
  }
  return generations;
}

std::map<std::string, Mount> WatchedTrees::Mounts() const {
  std::map<std::string, Mount> mounts;
  for (const auto& [generation, tree] : trees_) {
    mounts.emplace(generation, tree.mount);
  }
  return mounts;
}

}  // namespace cachewarm::agent
