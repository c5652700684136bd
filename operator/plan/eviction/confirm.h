// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/api/kubernetes.h"
#include "lib/api/node_cache.h"
#include "lib/base/clock.h"

// Decides which trees the agent of a node may remove. Pure.
namespace cachewarm::plan {

// A pod that has not ended and whose volume is the cache directory of a warmup.
struct MountingPod {
  // From the path of the volume. Empty: unknown, so the pod may have mounted any tree.
  std::string warmup_uid;
  std::string node;  // empty: not bound yet
  // The earliest start of its containers; zero: not all of them have started.
  WallTime started_time{};
  friend bool operator==(const MountingPod&, const MountingPod&) = default;
};

// Returns nullopt if the pod has ended, or its cache volume is not the directory of a warmup.
std::optional<MountingPod> MountingPodOf(const api::Pod& pod);

struct EvictionInput {
  std::string node;
  const std::vector<api::EvictableTree>& offered;  // status.evictable of the node
  // The mounting pods of the node. If an offered tree has a link: also all that are not bound yet.
  const std::vector<MountingPod>& pods;
  const std::set<std::string>& warmups;  // uids of all CacheWarmups that exist
};

// Returns the offered trees that may be removed, sorted by generation:
//  - without a link: every pod of the tree's warmup that is bound to the node has started all its
//    containers more than api::kMountedBefore after the link was switched, so it has mounted a
//    newer tree;
//  - with a link: the warmup no longer exists, and no pod of it is bound to the node or unbound.
std::vector<api::EvictableTree> ConfirmEvictions(const EvictionInput& input);

}  // namespace cachewarm::plan
