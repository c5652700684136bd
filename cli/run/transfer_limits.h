// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/arguments.h"
#include "lib/base/clock.h"

// Limits of "load" and "save". Without a flag, an environment variable of b10-transfer 0.4.1
// applies, so that a container image that sets it needs no change (docs/migration/b10-transfer.md).
// Pure.
namespace cachewarm::cli {

using Variables = std::map<std::string, std::string>;

struct TransferLimits {
  int64_t packed_bytes_max = 0;               // maximum packed size of a bundle; 0: no limit
  int64_t local_free_bytes_min = 64LL << 20;  // must stay free on the disk of the cache directory
  int64_t store_free_bytes_min = 0;           // must be free on the disk of the store; 0: any
  // Maximum wait for another process that loads into the same directory.
  Duration lock_wait{60'000};
  // The cache directory must be one of these or lie below one of them.
  std::vector<std::string> allowed;
};

// Options --max-bytes, --min-free-bytes, --allow-dir.
std::span<const Option> TransferLimitOptionList();

// Returns the limits. A flag takes precedence over the environment variables of the same limit:
//   packed_bytes_max      MAX_CACHE_SIZE_MB, at most MAX_CACHE_SIZE_CAP_MB
//   local_free_bytes_min  MIN_LOCAL_SPACE_MB
//   store_free_bytes_min  the larger of MIN_B10FS_SPACE_MB and MAX_CONCURRENT_SAVES x the maximum
//                         size of the cache
//   lock_wait             CLEANUP_LOCK_TIMEOUT_SECONDS (no flag)
// If BASETEN_FS_ENABLED is set and no --allow-dir is given, the allowed directories are those of
// b10-transfer. INVALID_ARGUMENT names the variable.
absl::StatusOr<TransferLimits> ReadTransferLimits(const Arguments& arguments,
                                                  const Variables& environment);

// Checks that the absolute path `directory`, without links and "..", is allowed. PERMISSION_DENIED
// lists the allowed directories.
absl::Status CheckAllowed(const std::string& directory, const TransferLimits& limits);

}  // namespace cachewarm::cli
