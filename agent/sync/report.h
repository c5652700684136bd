// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/sync/history.h"
#include "agent/sync/inventory.h"
#include "agent/sync/plan.h"
#include "lib/api/node_cache.h"

namespace cachewarm::agent {

// Layer bytes that a running fetch has read, and the time taken.
struct FetchProgress {
  int64_t bytes = 0;
  double seconds = 0;  // from the start of the fetch until these bytes were read
};

// Rounds `done` down to a multiple of a twentieth of `wanted`, the size of the bundle. This limits
// the number of status writes.
int64_t ReportedBytes(int64_t done, int64_t wanted);

// Input of ReportWarmups(). The report is derived from the disk and the recorded failures, not from
// earlier reports, so a restarted agent reports the same.
struct ReportInput {
  const api::NodeCacheSpec& desired;
  const Inventory& inventory;
  const History& history;
  const Plan& plan;
  // Progress of the running fetches, rounded by ReportedBytes().
  const std::map<Digest, FetchProgress>& progress;
  const std::map<Mount, std::string>& mount_problems;  // why a directory could not be prepared
  const api::RootStatus& root;
};

// Returns one entry per wanted warmup, in the order of the spec. For a warmup that harvests, it
// also lists the bundles of the active tree that are no longer wanted. A run-as (user of the pods)
// counts as prepared only if its link leads to a usable directory, and the disk is writable and not
// mounted noexec. A bundle counts as active only if it is in the active generation of every run-as.
// Pure.
std::vector<api::NodeWarmup> ReportWarmups(const ReportInput& input);

// Returns true if the statuses differ. Ignores the heartbeat, and differences of a twentieth or
// less in the used, free and evictable bytes of the disk.
bool HasStatusChanged(const api::NodeCacheStatus& before, const api::NodeCacheStatus& after);

}  // namespace cachewarm::agent
