// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "agent/evidence/tree_watcher.h"
#include "agent/sync/damage.h"
#include "lib/bundle/store/store.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// Input of ScrubTree(). All references must outlive the call.
struct ScrubJob {
  const fs::Dir& root;
  Watcher& watcher;
  // Used only after damage that a wrong entry list may have caused, to find the bundle with that
  // list.
  bundle::Store& store;
  const caches::CacheTable& table;
  const Clock& clock;
  std::string generation;
  std::map<std::string, DamagedTree> damaged;  // other damaged trees of this node, by generation
  // Called before `bytes` are read; it may block to limit the read rate. If it returns CANCELLED,
  // the pass ends.
  std::function<absl::Status(int64_t bytes)> pace;
};

struct Scrubbed {
  int64_t files = 0;       // number of files in the entry list
  int64_t read_files = 0;  // files whose content was read
  int64_t read_bytes = 0;
  int64_t modified_by_engine = 0;  // replaced or rewritten by engines
  int64_t gone = 0;  // removed by engines, or by the agent because they were truncated
  // Files that were skipped because a process is writing them. Excludes files that engines rewrite
  // in place (Placement::writable).
  int64_t in_flight = 0;
  std::optional<DamagedTree> damage;
  Digest inconsistent_bundle;  // the bundle whose entry list is wrong; empty: none or unknown
};

// Compares a tree with its entry list: first the stamp (inode, size, times) of each file, then the
// content (sha256) of files whose stamp has changed since they were last read. A pass over an
// unchanged tree costs one stat(2) per file; the first pass reads everything. The pass ends at the
// first damage, so that the tree is replaced soon. Files that are being written are skipped and
// checked in the next pass.
//
// Writes the stamps of files with the right content to the entry records, and the progress to the
// scrub record. If stopped, reads at most one more buffer, still writes both records, and returns
// CANCELLED. Keeps its reads out of the records of `watcher`, which must show only reads by pods. A
// file that cannot be read is damage, not an error. Other errors are those of reading and writing
// the records. Memory: the entry records and 256 KiB.
absl::StatusOr<Scrubbed> ScrubTree(const ScrubJob& job, std::stop_token stop);

}  // namespace cachewarm::agent
