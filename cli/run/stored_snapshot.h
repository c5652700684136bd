// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/run/coverage.h"
#include "lib/fs/dir.h"

// Keeps a snapshot of a cache directory from one command to the next, so that "save" notices files
// that an engine wrote again after the last "load" or "save".
namespace cachewarm::cli {

// Text of a stored snapshot, and its parser. INVALID_ARGUMENT for any other text. Pure.
std::string WriteSnapshot(const TreeSnapshot& snapshot);
absl::StatusOr<TreeSnapshot> ParseSnapshot(std::string_view text);

// Returns the snapshot stored in a cache directory; empty if there is none or it is damaged: then
// no file counts as written again.
TreeSnapshot ReadStoredSnapshot(const fs::Dir& dir);
// Replaces the stored snapshot. RESOURCE_EXHAUSTED if its text is longer than 64 MiB; the stored
// one is then unchanged.
absl::Status StoreSnapshot(const fs::Dir& dir, const TreeSnapshot& snapshot);

// Returns `now` with the older state of files that `stored` has too. "load" stores this: it adds
// files, and must not hide that another file was written again before it ran.
TreeSnapshot KeepOlder(const TreeSnapshot& stored, TreeSnapshot now);

}  // namespace cachewarm::cli
