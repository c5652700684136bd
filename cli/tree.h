// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "cli/console.h"
#include "lib/bundle/transfer.h"

namespace cachewarm::cli {

// A directory to create, and the limits of the bundle to unpack into it.
struct NewTree {
  std::string directory;
  bundle::Limits limits;
};
// Unpacks a bundle into a directory: extracts next to it, verifies, syncs and renames. After an
// error or a crash the directory is unchanged. File modes are those of lib/caches, so that engines
// can use the files. Locks in the bundle are not unpacked. Errors: ALREADY_EXISTS if the directory
// is not empty.
absl::Status MakeTree(const bundle::RepositoryRef& place, const bundle::Bundle& found,
                      const NewTree& tree, Progress& progress, std::stop_token stop);

}  // namespace cachewarm::cli
