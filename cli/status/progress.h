// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/api/node_cache.h"
#include "lib/base/clock.h"

// The progress of a CacheWarmup, from its status and the NodeCaches. Pure.
namespace cachewarm::status {

// Of a build: kStarting until its container has started, kCompiling until its engine is ready,
// kSettling until its files are packed, kPublishing until the bundle is in the store. Of a node:
// kWaiting for a fetch, and kNoBundle if no bundle fits it yet.
enum class State {
  kStarting,
  kCompiling,
  kSettling,
  kPublishing,
  kProving,
  kBuildFailed,
  kNoBundle,
  kWaiting,
  kFetching,
  kActive,
  kFailed,
};
std::string_view Name(State state);  // "Compiling"

// One build, or one bundle on one node.
struct BundleProgress {
  std::string gpu_type;
  std::string cpu_class;
  std::string node;
  std::string pod;  // of a build
  State state = State::kWaiting;
  std::string key;
  Digest bundle;  // empty: none yet
  int64_t bytes_done = 0;
  int64_t bytes_total = 0;        // 0: not known
  double bytes_per_second = 0;    // of a running fetch; 0: not known
  std::optional<Duration> taken;  // of a running build: time since its container started
  // Of a running fetch, by its rate so far; of a compile, by the median of the cold starts.
  std::optional<Duration> left;
  std::optional<WallTime> reported;  // when the node's agent reported last
  std::string message;
};

// Agents report every 5 minutes, and during a fetch every few seconds. A report older than this
// counts as old.
inline constexpr Duration kReportAgeMax = std::chrono::minutes(11);
inline constexpr Duration kFetchReportAgeMax = std::chrono::seconds(30);

// Returns the builds of the warmup and, for each node that its pods may use, the bundles that the
// node has or should get. Sorted by GPU type, then builds before nodes, then by node.
std::vector<BundleProgress> ProgressOf(const api::CacheWarmup& warmup,
                                       const std::vector<api::NodeCache>& nodes, WallTime now);

}  // namespace cachewarm::status
