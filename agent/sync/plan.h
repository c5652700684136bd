// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "agent/sync/disk_space.h"
#include "agent/sync/history.h"
#include "agent/sync/inventory.h"
#include "lib/api/node_cache.h"

// Plans the next steps of the agent: desired state × inventory × disk limits → ordered steps. Pure:
// no clock, no disk, no log. The agent plans again after every change, so a plan ignores the
// effects of its own steps.
namespace cachewarm::agent {

// Makes the path of the mount a link to a usable directory.
struct Prepare {
  Mount mount;
  int renew = 0;
  friend bool operator==(const Prepare&, const Prepare&) = default;
};

// Flips the mount's link to an empty tree, because the active tree is damaged or the spec requests
// a fresh one (`renew`).
struct Renew {
  Mount mount;
  int renew = 0;
  friend bool operator==(const Renew&, const Renew&) = default;
};

// Flips the mount's link to a generation that is complete on the disk.
struct Activate {
  Mount mount;
  std::string generation;
  int renew = 0;
  friend bool operator==(const Activate&, const Activate&) = default;
};

// Makes the generation from these bundles. If two bundles contain the same path, the file of the
// first bundle is used.
struct Fetch {
  Mount mount;
  std::string generation;
  std::vector<api::WantedBundle> bundles;
  // Active trees of the same warmup whose files are reused. Excludes damaged trees, and trees made
  // for another value of the counter `renew` in the spec. Empty if the new tree replaces a damaged
  // one.
  std::vector<std::string> sources;
  friend bool operator==(const Fetch&, const Fetch&) = default;
};

// Removes an unfinished tree of an interrupted step from the staging directory.
struct Discard {
  std::string staging;
  friend bool operator==(const Discard&, const Discard&) = default;
};

using Step = std::variant<Prepare, Renew, Activate, Fetch, Discard>;

struct PlanInput {
  const api::NodeCacheSpec& desired;
  const Inventory& inventory;
  const History& history;
  DiskLimits disk;
  MonoTime now{};
  bool is_known = true;  // false: `desired` is empty because the spec is not known yet
};

struct Plan {
  // Ordered by kind: Prepare and Renew, Activate, Discard, Fetch. Thus quick steps that pods need
  // come first. Steps of one kind are ordered by the fetch priority of their warmups.
  std::vector<Step> steps;
  // Bundles that are not fetched for lack of disk space or because their trees were damaged
  // repeatedly, with the failure to report.
  std::map<BundleName, FailureState> refused;
  // The amount to remove from the disk so that these bundles fit and the limits hold.
  DiskAmount shortage;
  // Trees that are being fetched and that no mount needs any longer.
  std::set<std::string> unneeded;
  // Errors of invalid mounts in the spec, by warmup uid.
  std::map<std::string, std::string> invalid;
  // Time of the earliest retry; MonoTime::max() if there is none.
  MonoTime next = MonoTime::max();
};

Plan MakePlan(const PlanInput& input);

// Maximum number of trees that a node makes of the same bundles if one tree after the other gets
// damaged. After three damaged trees the cause must be permanent, so a fourth would be damaged too.
inline constexpr int kTreesMax = 3;

// Returns the name of the tree to activate at `mount` for these bundles: an existing undamaged one,
// else the next one to make; nullopt if kTreesMax were damaged.
std::optional<std::string> SelectTree(const Inventory& inventory, const Mount& mount,
                                      const std::vector<Digest>& digests, int renew);

// Returns the bundles that the mount should contain now, in the order of `wanted`: all except those
// that wait for a retry.
std::vector<api::WantedBundle> EligibleBundles(const api::WantedWarmup& wanted,
                                               const History& history, MonoTime now);

std::vector<Digest> DigestsOf(const std::vector<api::WantedBundle>& bundles);

}  // namespace cachewarm::agent
