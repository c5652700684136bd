// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stop_token>

#include "absl/status/statusor.h"
#include "cli/run/source.h"
#include "lib/base/clock.h"
#include "lib/bundle/policy.h"
#include "lib/bundle/transfer.h"
#include "lib/fs/dir.h"

namespace cachewarm::cli {

struct FetchLimits {
  bundle::Limits archive;
  int64_t packed_bytes_max = 0;         // reject larger bundles; 0: no limit
  int64_t free_bytes_min = 64LL << 20;  // must stay free on the disk of the cache directory
  // Maximum wait for another process that fetches into the same directory.
  Duration lock_wait{60'000};
};

struct FetchReport {
  absl::Status status;
  Digest bundle;      // the bundle in the store; empty if it could not be read
  int64_t files = 0;  // added to the directory; 0 if it already had every file
  int64_t bytes = 0;
  int64_t rivals = 0;  // autotune results of the bundle that stayed out of the directory
};

struct FetchJob {
  const BundleSource& source;
  const fs::Dir& dir;  // the cache directory
  const Clock& clock;
  FetchLimits limits;
  bundle::OnProgress on_progress;
};

// Adds to the cache directory the files of the store's bundle that it lacks; existing files stay as
// they are. A set of autotune results stays out as a whole if the directory has one of another
// generation, and locks stay out (lib/capture/restore_rules.h). Files that name other files of
// their directory by absolute paths are rewritten for the directory (lib/caches/relocate.h).
// Downloads below kOwnFiles and renames complete, verified files into place, so that a crash or an
// error leaves no partial file among them; the next call removes the remains. Blocks. Errors: those
// of ReadUsableBundle(); DATA_LOSS if the files are damaged; OUT_OF_RANGE if the bundle is larger
// than `packed_bytes_max`; RESOURCE_EXHAUSTED if the disk is or would become too full;
// DEADLINE_EXCEEDED after `lock_wait`; CANCELLED soon after `stop`.
FetchReport FetchMissing(const FetchJob& job, std::stop_token stop);

}  // namespace cachewarm::cli
