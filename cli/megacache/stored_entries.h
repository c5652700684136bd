// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/fs/dir.h"
#include "lib/megacache/artifact.h"

namespace cachewarm::cli {

// The cache entries that torch stored in an Inductor directory.
struct StoredEntries {
  std::vector<megacache::Entry> entries;  // point into `contents`
  std::deque<std::string> contents;
  std::vector<std::string> damaged;  // "path: reason"; none of them is among the entries
};

// Reads the entries of an Inductor directory in the order of their paths. A file whose name is not
// the hash of its content, as torch names it, is damaged. RESOURCE_EXHAUSTED above 4 GiB of
// entries; CANCELLED soon after `stop`.
absl::StatusOr<StoredEntries> ReadStoredEntries(const fs::Dir& inductor,
                                                const std::stop_token& stop);

}  // namespace cachewarm::cli
