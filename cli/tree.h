// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "cli/console.h"
#include "lib/bundle/transfer.h"

namespace cachewarm::cli {

// Makes a directory of a bundle: extracted beside it, verified, synced, then renamed. It must be
// missing or empty (else ALREADY_EXISTS); after an error or a crash it is what it was. Modes are
// those of lib/caches, so that engines can work in it.
struct NewTree {
  std::string directory;
  bundle::Limits limits;
};
absl::Status MakeTree(const bundle::RepositoryRef& place, const bundle::Bundle& found,
                      const NewTree& tree, Progress& progress, std::stop_token stop);

}  // namespace cachewarm::cli
