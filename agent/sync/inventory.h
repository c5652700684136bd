// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/sync/damage.h"
#include "agent/sync/disk_space.h"
#include "agent/sync/warmup_mount.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"

namespace cachewarm::agent {

// State of the path that pods mount.
enum class LinkState {
  kActive,     // a link to a complete generation that pods can write
  kUnusable,   // a link to a complete generation whose mode keeps pods from writing
  kDirectory,  // a directory made by kubelet before the agent prepared the mount
  kBroken,     // a dangling link, a link to outside the root, or neither link nor directory
};

struct Link {
  LinkState state = LinkState::kBroken;
  std::string generation;  // target of the link; empty for kDirectory and kBroken
  int renew = 0;           // value of the counter `renew` in the spec when the link was set
  friend bool operator==(const Link&, const Link&) = default;
};

// A complete tree. A generation directory is always complete, because it is created by one rename.
struct Generation {
  std::vector<Digest> digests;  // empty if it was made without a bundle, or its record was lost
  int64_t bytes = 0;            // size of the bundles' files
  double fetch_seconds = 0;     // time from the start of the fetch to the complete tree
  DiskAmount usage;             // disk usage when it was made; zero: not recorded
  // Warmup and user of the pods that the tree was made for; empty: unknown.
  std::string warmup_uid;
  std::string run_as;
  // When the link of its mount was switched to another tree. Zero: a link leads to the tree, or the
  // time is unknown.
  WallTime unlinked_time{};
  friend bool operator==(const Generation&, const Generation&) = default;
};

// State of the node's disk, from one scan.
struct Inventory {
  std::map<Mount, Link> links;  // mounts whose path does not exist are absent
  std::map<std::string, Generation> generations;
  // Trees that were moved aside by RetireForeignTrees(), by name ("retired-<id>-<n>").
  std::map<std::string, Generation> retired;
  std::set<std::string> staging;               // names of unfinished trees
  std::map<std::string, DamagedTree> damaged;  // by generation; also lists removed trees
};

}  // namespace cachewarm::agent
