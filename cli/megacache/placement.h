// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/megacache/objects.h"
#include "lib/fs/dir.h"
#include "lib/megacache/artifact.h"

namespace cachewarm::cli {

// A file of a cache directory, and the source of its bytes.
struct ImportedFile {
  std::string path;                    // relative to the cache directory: "inductor/..."
  const megacache::Entry* entry = {};  // holds the bytes; null: a file of ObjectFiles
  bool may_replace = false;            // replaces a file whose path has no hash of the content
  int64_t bytes = 0;
};

// Returns the files that an import creates: first those of `objects`, so that no process finds an
// entry without its kernels. If several entries have the same path, the last one counts, as in
// torch. INVALID_ARGUMENT for an entry that has no path.
absl::StatusOr<std::vector<ImportedFile>> PlanImport(std::span<const megacache::Entry> entries,
                                                     const ObjectFiles& objects);

struct ImportCounts {
  int64_t files = 0;  // written
  int64_t bytes = 0;
  int64_t present = 0;  // already in the directory, or autotune results that stay out
};

struct ImportJob {
  const std::vector<ImportedFile>& files;
  const std::optional<fs::Dir>& objects;  // directory of the files whose `entry` is null
  const fs::Dir& tree;                    // the cache directory
  // Reports the bytes handled so far.
  std::function<void(int64_t done_bytes, int64_t total_bytes)> on_progress;
};

// Writes the files that the cache directory lacks, each with one rename, and makes them durable. If
// the directory has an autotune result that differs from that of the artifact, it keeps its own.
// CANCELLED soon after `stop`. After an error a part of the files is there; each is complete.
absl::StatusOr<ImportCounts> WriteImport(const ImportJob& job, const std::stop_token& stop);

}  // namespace cachewarm::cli
