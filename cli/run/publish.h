// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "cli/run/source.h"
#include "lib/api/node_cache.h"
#include "lib/base/random.h"
#include "lib/bundle/worker_pool.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/dir.h"

namespace cachewarm::cli {

struct PublishJob {
  const BundleSource& source;
  const fs::Dir& dir;  // the cache directory
  const Clock& clock;
  // The caches whose files are published. Files of other caches stay where they are, in the
  // directory and in the bundle of the store.
  const caches::CacheTable& table = caches::CacheTable::AllPresets();
  std::set<std::string> replaced;  // paths that the engine wrote again: see Covers()
  Digest damaged;  // bundle that could not be unpacked: replaced, not merged; empty: none
  int threads = bundle::DefaultThreads();
  int64_t packed_bytes_max = 0;  // 0: no limit
  Random random = SystemRandom();
};

enum class PublishOutcome {
  kPublished,  // the tag points to a bundle with the files of the directory and those of the store
  kCovered,    // the bundle in the store already has every file
  kEmpty,      // the directory has no file to publish
};

struct PublishReport {
  PublishOutcome outcome = PublishOutcome::kEmpty;
  int64_t files = 0;  // of the bundle
  int64_t bytes = 0;
  api::LeftBehind unnamed;  // files of the directory that match no cache kind
};

// Returns what "cachewarm run" prints about a publication; empty if there was none.
std::string ToText(const PublishReport& report);

// Publishes the union of the cache directory and the bundle in the store, unless that bundle has
// every file. Waits for other publishers if the store is a directory. Makes up to 5 attempts if
// other publishers move the tag (docs/design/0022). Replaces the bundle in the store, instead of
// merging it, if this machine cannot use it or if it is not signed by a trusted key. A set of
// autotune results is that of the directory if it has every path of the set in the store, else that
// of the store: two generations are not united (lib/capture/restore_rules.h). Blocks.
// Errors: OUT_OF_RANGE above `packed_bytes_max`; ABORTED if files change during the call, or after
// the last attempt; CANCELLED soon after `stop`; else the error of the store. After an error the
// tag is unchanged or points to a complete bundle.
absl::StatusOr<PublishReport> PublishUnion(const PublishJob& job, std::stop_token stop);

}  // namespace cachewarm::cli
