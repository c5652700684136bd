// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/sync/damage.h"
#include "agent/sync/mount.h"
#include "lib/base/digest.h"

namespace cachewarm::agent {

// What stands where pods mount.
enum class LinkState {
  kActive,     // a link to a complete generation whose directory any allowed pod can write
  kUnusable,   // such a link, but owner or mode of the directory are not what pods need
  kDirectory,  // kubelet came first and made a directory
  kBroken,     // a link to nothing, to elsewhere, or no link and no directory at all
};

struct Link {
  LinkState state = LinkState::kBroken;
  std::string generation;  // where the link leads; empty for kDirectory and kBroken
  int renew = 0;           // which fresh start of the mount that tree belongs to
  friend bool operator==(const Link&, const Link&) = default;
};

// A complete tree. It exists if and only if its directory does: it came there by one rename.
struct Generation {
  std::vector<Digest> digests;  // empty when cold, or when its record was lost
  int64_t bytes = 0;            // of the bundles' files
  double fetch_seconds = 0;     // manifest to complete tree
  friend bool operator==(const Generation&, const Generation&) = default;
};

// What is on the node's disk, as one scan saw it.
struct Inventory {
  std::map<Mount, Link> links;  // what does not exist at all is absent
  std::map<std::string, Generation> generations;
  std::set<std::string> staging;               // names of unfinished trees
  std::map<std::string, DamagedTree> damaged;  // by generation, whether it is still there or not
};

}  // namespace cachewarm::agent
