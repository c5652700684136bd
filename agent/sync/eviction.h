// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/sync/disk_space.h"
#include "agent/sync/inventory.h"
#include "lib/api/node_cache.h"

// Decides which trees the agent offers to remove, and in which order. Pure. The operator confirms
// an offer when no running pod can have the tree mounted (operator/plan/eviction).
namespace cachewarm::agent {

// Why a tree is offered, in the order in which trees are removed.
enum class EvictionCause {
  kUnusable,    // retired or damaged: no link leads to it again
  kCold,        // without a bundle, and no link leads to it
  kSuperseded,  // with bundles, and spec.retain newer ones are kept
  kWarmupGone,  // of a warmup that the node no longer lists and whose link is gone or goes with it
  kDiskPressure,  // kept by spec.retain, but the disk is short of space
};

// Returns the value of the metric label `reason`.
std::string_view Name(EvictionCause cause);

struct EvictionOffer {
  api::EvictableTree tree;
  EvictionCause cause = EvictionCause::kCold;
  // The mount whose link still leads to the tree, and is removed with it.
  std::optional<Mount> link;
  DiskAmount usage;
  friend bool operator==(const EvictionOffer&, const EvictionOffer&) = default;
};

struct EvictionInput {
  // The spec of the node's NodeCache. Must be known: without it, every warmup would count as gone.
  const api::NodeCacheSpec& desired;
  const Inventory& inventory;
  // By name of a tree: when this process first saw the tree without a link.
  const std::map<std::string, WallTime>& first_seen;
  // Trees that a running step reads.
  const std::set<std::string>& in_use;
  // By name of a tree: its disk usage.
  const std::map<std::string, DiskAmount>& usage;
  DiskAmount shortage;  // what must be removed for fetches and the limits
};

struct EvictionPlan {
  // The next tree to remove comes first. At most 128, of which at most 96 with a link.
  std::vector<EvictionOffer> offers;
  // Mounts that the node no longer lists and whose links are switched to empty trees, because the
  // disk is short of space. Their trees are offered afterwards.
  std::vector<Mount> unlink;
};

EvictionPlan PlanEviction(const EvictionInput& input);

// Returns the offers that spec.evict confirms, by entries that are equal to the offer: of the
// retained trees (kDiskPressure) only as many as `shortage` needs.
std::vector<EvictionOffer> ConfirmedOffers(const std::vector<EvictionOffer>& offers,
                                           const std::vector<api::EvictableTree>& confirmed,
                                           DiskAmount shortage);

}  // namespace cachewarm::agent
