// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "agent/evidence/watcher.h"
#include "agent/sync/damage.h"
#include "lib/bundle/store/store.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// One look at one tree. What it refers to must outlive the call.
struct ScrubJob {
  const fs::Dir& root;
  Watcher& watcher;
  bundle::Store& store;  // asked for entry lists, when one of them must be lying
  const caches::CacheTable& table;
  const Clock& clock;
  std::string generation;
  std::map<std::string, DamagedTree> damaged;  // the others of this node, by generation
  // Before so many bytes are read; blocks to keep the reading slow. CANCELLED ends the pass.
  std::function<absl::Status(int64_t bytes)> pace;
};

struct Scrubbed {
  int64_t files = 0;       // of the entry list
  int64_t read_files = 0;  // whose content was read
  int64_t read_bytes = 0;
  int64_t modified_by_engine = 0;  // replaced or rewritten by engines
  int64_t gone = 0;       // removed by engines, or by the agent because they were truncated
  int64_t in_flight = 0;  // changed a moment ago, of kinds that engines do not write in place
  std::optional<DamagedTree> damage;
  Digest inconsistent_bundle;  // the bundle whose entry list is wrong; empty: none, or it cannot be
                               // told
};

// Compares a tree with its entry list. First the stamp of each file; the content (sha256) only
// where the stamp is another than when it was last read, so a pass over a tree that nobody changed
// costs a stat(2) a file, and the first pass reads everything. Ends with the first damage: the
// sooner the link is flipped, the better. Files that are being written are left for the next pass.
//
// A file whose content is right gets its stamp renewed in the entry records; how far the pass came
// is in the scrub record, also when it was stopped (CANCELLED, within a buffer's time). Our own
// reads are kept out of the evidence. Errors of single files are damage, not errors of the pass;
// those of the records are. Memory: the entry records, and 256 KiB.
absl::StatusOr<Scrubbed> ScrubTree(const ScrubJob& job, std::stop_token stop);

}  // namespace cachewarm::agent
