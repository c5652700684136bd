// SPDX-License-Identifier: Apache-2.0
#include "cli/run/transfer_limits.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/base/status.h"
#include "lib/settings/values.h"

namespace cachewarm::cli {
namespace {

constexpr int64_t kMegabyte = 1LL << 20;  // as b10-transfer counts
constexpr int64_t kMegabytesMax = 1LL << 30;
constexpr int64_t kSavesMax = 100;
constexpr int64_t kTimeoutSecondsMax = 7200;
constexpr int64_t kLockTimeoutSecondsMax = 3600;
constexpr int64_t kCacheMegabytes = 1024;  // default of MAX_CACHE_SIZE_MB in b10-transfer

// Returns the number in a variable; nullopt if it is not set or empty.
absl::StatusOr<std::optional<int64_t>> Number(const Variables& environment, const std::string& name,
                                              int64_t most) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) {
    return std::nullopt;
  }
  const auto number = settings::WholeNumber(found->second, 0, most);
  CW_RETURN_IF_ERROR(Annotate(number.status(), name));
  return *number;
}

absl::Status ReadSizes(const Variables& environment, TransferLimits& limits) {
  CW_ASSIGN_OR_RETURN(auto size, Number(environment, "MAX_CACHE_SIZE_MB", kMegabytesMax));
  CW_ASSIGN_OR_RETURN(const auto cap, Number(environment, "MAX_CACHE_SIZE_CAP_MB", kMegabytesMax));
  if (cap.has_value()) {
    size = std::min(size.value_or(*cap), *cap);
  }
  limits.packed_bytes_max = size.value_or(0) * kMegabyte;
  CW_ASSIGN_OR_RETURN(const auto local, Number(environment, "MIN_LOCAL_SPACE_MB", kMegabytesMax));
  if (local.has_value()) {
    limits.local_free_bytes_min = *local * kMegabyte;
  }
  CW_ASSIGN_OR_RETURN(const auto floor, Number(environment, "MIN_B10FS_SPACE_MB", kMegabytesMax));
  CW_ASSIGN_OR_RETURN(const auto saves, Number(environment, "MAX_CONCURRENT_SAVES", kSavesMax));
  const int64_t for_saves = saves.value_or(0) * size.value_or(kCacheMegabytes);
  limits.store_free_bytes_min = std::max(floor.value_or(0), for_saves) * kMegabyte;
  return absl::OkStatus();
}

absl::Status ReadTimes(const Variables& environment, TransferLimits& limits) {
  CW_ASSIGN_OR_RETURN(const auto seconds,
                      Number(environment, "CLEANUP_LOCK_TIMEOUT_SECONDS", kTimeoutSecondsMax));
  if (seconds.has_value()) {
    limits.lock_wait = Duration(std::min(*seconds, kLockTimeoutSecondsMax) * 1000);
  }
  // This variable is only validated: cachewarm recognizes the remains of a killed process by their
  // free lock, not by their age.
  return Number(environment, "CLEANUP_INCOMPLETE_TIMEOUT_SECONDS", kTimeoutSecondsMax).status();
}

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) {
    path.pop_back();
  }
  return path;
}

}  // namespace

std::span<const Option> TransferLimitOptionList() {
  static constexpr std::array<Option, 3> kOptions = {{
      {.name = "max-bytes",
       .value = "BYTES",
       .help = "reject a bundle with more packed bytes (default: MAX_CACHE_SIZE_MB, else no limit)",
       .range = Range()},
      {.name = "min-free-bytes",
       .value = "BYTES",
       .help = "bytes that must stay free on the disk that is written (default of load: "
               "MIN_LOCAL_SPACE_MB, else 64 MiB; of save: MIN_B10FS_SPACE_MB, else 0)",
       .range = Range()},
      {.name = "allow-dir",
       .value = "DIR",
       .help = "accept only cache directories that are DIR or below it (default: any)",
       .repeats = true},
  }};
  return kOptions;
}

absl::StatusOr<TransferLimits> ReadTransferLimits(const Arguments& arguments,
                                                  const Variables& environment) {
  TransferLimits limits;
  CW_RETURN_IF_ERROR(ReadSizes(environment, limits));
  CW_RETURN_IF_ERROR(ReadTimes(environment, limits));
  limits.packed_bytes_max = arguments.Number("max-bytes", limits.packed_bytes_max);
  limits.local_free_bytes_min = arguments.Number("min-free-bytes", limits.local_free_bytes_min);
  limits.store_free_bytes_min = arguments.Number("min-free-bytes", limits.store_free_bytes_min);
  limits.allowed = arguments.Values("allow-dir");
  if (limits.allowed.empty() && environment.contains("BASETEN_FS_ENABLED")) {
    limits.allowed = {"/tmp", "/cache", "/bdn/cache"};
    if (const auto home = environment.find("HOME"); home != environment.end()) {
      limits.allowed.push_back(home->second + "/.cache");
    }
  }
  std::transform(limits.allowed.begin(), limits.allowed.end(), limits.allowed.begin(),
                 WithoutSlash);
  return limits;
}

absl::Status CheckAllowed(const std::string& directory, const TransferLimits& limits) {
  const auto contains = [&](const std::string& allowed) {
    return directory == allowed || allowed == "/" || directory.starts_with(allowed + "/");
  };
  if (limits.allowed.empty() ||
      std::any_of(limits.allowed.begin(), limits.allowed.end(), contains)) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      fmt::format("the cache directory {} is not allowed; choose one below {} or add --allow-dir",
                  directory, fmt::join(limits.allowed, ", ")));
}

}  // namespace cachewarm::cli
