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

// Layer bytes that a running fetch has moved, and in what time.
struct FetchProgress {
  int64_t bytes = 0;
  double seconds = 0;  // first byte → that many
};

// `done` of `wanted` bytes as they are reported, in twentieths: a write of the status for every
// chunk would drown the API server.
int64_t ReportedBytes(int64_t done, int64_t wanted);

// What the status says about warmups comes from the disk and from this process's setbacks; a
// restarted agent reports the same.
struct ReportInput {
  const api::NodeCacheSpec& desired;
  const Inventory& inventory;
  const History& history;
  const Plan& plan;
  const std::map<Digest, FetchProgress>& progress;     // of running fetches, in ReportedBytes()
  const std::map<Mount, std::string>& mount_problems;  // why a directory could not be prepared
  const api::RootStatus& root;
};

// One entry per wanted warmup, in the order of the spec. A run-as is prepared only if its link
// leads to a usable directory on a disk that can be written and executed from. A bundle is active
// only if it is in the active generation of every run-as. Pure.
std::vector<api::NodeWarmup> ReportWarmups(const ReportInput& input);

// True when `after` is worth a write: anything but the heartbeat differs, sizes of the disk by
// more than a twentieth.
bool HasStatusChanged(const api::NodeCacheStatus& before, const api::NodeCacheStatus& after);

}  // namespace cachewarm::agent
