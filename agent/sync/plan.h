// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/sync/history.h"
#include "agent/sync/inventory.h"
#include "lib/api/node_cache.h"

// What the agent does next: desired × inventory × limits → ordered steps. Pure: no clock, no disk,
// no log. Planned again after every step, so a plan need not foresee what its own steps change.
namespace cachewarm::agent {

// Make the mount a link to a usable directory.
struct Prepare {
  Mount mount;
  int renew = 0;
  friend bool operator==(const Prepare&, const Prepare&) = default;
};

// The active tree is not to be used any more: flip the link to an empty one at once.
struct Renew {
  Mount mount;
  int renew = 0;
  friend bool operator==(const Renew&, const Renew&) = default;
};

// Flip the mount's link to a generation that is complete on the disk.
struct Activate {
  Mount mount;
  std::string generation;
  int renew = 0;
  friend bool operator==(const Activate&, const Activate&) = default;
};

// Make the generation from these bundles; the first wins where two have the same path.
struct Fetch {
  Mount mount;
  std::string generation;
  std::vector<api::WantedBundle> bundles;
  // Active trees of the same warmup: what they hold need not be moved. None of an earlier `renew`
  // or that was damaged, and none at all for a tree that replaces a damaged one.
  std::vector<std::string> sources;
  friend bool operator==(const Fetch&, const Fetch&) = default;
};

// Remove what an interrupted step left in the staging directory.
struct Discard {
  std::string staging;
  friend bool operator==(const Discard&, const Discard&) = default;
};

using Step = std::variant<Prepare, Renew, Activate, Fetch, Discard>;

struct DiskLimits {
  int64_t limit_bytes = 0;  // of all generations together; 0: no limit
  int64_t used_bytes = 0;
  int64_t free_bytes = INT64_MAX;
};

struct PlanInput {
  const api::NodeCacheSpec& desired;
  const Inventory& inventory;
  const History& history;
  DiskLimits disk;
  MonoTime now{};
};

struct Plan {
  // Prepare and Renew before Activate before Discard before Fetch: what pods wait for comes first,
  // and of each kind the steps of warmups with the greater need.
  std::vector<Step> steps;
  // Bundles that are not fetched because there is no room, or because their trees do not stay whole
  // here, with the reason to report.
  std::map<BundleName, FailureState> refused;
  // Mounts that the spec names wrongly, by warmup uid.
  std::map<std::string, std::string> invalid;
  // When a failure ends; MonoTime::max() when none is waiting.
  MonoTime next = MonoTime::max();
};

Plan MakePlan(const PlanInput& input);

// How often a node makes a new tree of the same bundles because the last one was damaged. What
// damages three is no accident, and a fourth would end as they did.
inline constexpr int kTreesMax = 3;

// The name of the tree that `mount` should show for these bundles: one that is there and not
// damaged, else the next that may be made; nullopt when kTreesMax were damaged.
std::optional<std::string> SelectTree(const Inventory& inventory, const Mount& mount,
                                      const std::vector<Digest>& digests, int renew);

// The bundles of `wanted` that may be tried now, in their order: all but those whose own failure
// lasts. What a mount should show.
std::vector<api::WantedBundle> EligibleBundles(const api::WantedWarmup& wanted,
                                               const History& history, MonoTime now);

std::vector<Digest> DigestsOf(const std::vector<api::WantedBundle>& bundles);

}  // namespace cachewarm::agent
