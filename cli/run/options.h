// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/run/engines.h"
#include "cli/run/output_tap.h"
#include "cli/run/schedule.h"
#include "cli/run/source.h"
#include "lib/caches/cache_table.h"

namespace cachewarm::cli {

// Seconds that --max-wait and --ready-after-quiet accept.
inline constexpr Range kWaitSeconds{0, 86'400};

// Options of "run" for its caches and for when the command is ready: --cache, --max-wait,
// --ready-url, --ready-log, --ready-after-quiet.
std::span<const Option> LifeCycleOptionList();

// Parsed values of these options.
struct LifeCycle {
  Duration max_wait{};
  ReadyRules rules;
  std::string ready_url;
  std::optional<Pattern> ready_log;
  bool publishes_while_running = true;
};
// Without a --ready option, the caches are published when they have been quiet for 60 s. With
// --ready-url or --ready-log, they are published when these have reported that the command is
// ready, and the caches have been quiet for 10 s.
absl::StatusOr<LifeCycle> ParseLifeCycle(const Arguments& arguments);

// Returns the caches that --cache names, by default every preset that is not opt-in.
absl::StatusOr<caches::CacheTable> ParseCaches(const Arguments& arguments);

// Options of verbs that work on the bundle of this machine: --store, --name, --dir, --key,
// --sign-key.
std::span<const Option> SourceOptionList();

inline constexpr Option kPythonOption{
    .name = "python",
    .value = "FILE",
    .help =
        "Python whose torch, triton, vllm, ... versions are part of the cache key (default: "
        "python3)"};
// Returns the versions of the engines that the Python of --python has.
EngineVersions EnginesOf(const Arguments& arguments, const Console& console);

// Opens the repository --name of --store for the key of this machine. The defaults of --store are
// CACHEWARM_STORE and then B10FS_CACHE_DIR, which b10-transfer uses. A store without a scheme is a
// directory: an image layout with one repository for each --name. INVALID_ARGUMENT names the
// option; UNAVAILABLE if the GPU driver does not answer.
absl::StatusOr<BundleSource> OpenSource(const Arguments& arguments, const Console& console,
                                        EngineVersions engines);

// Returns the absolute path of the cache directory: --dir, else one below XDG_CACHE_HOME or
// ~/.cache whose name ends in the first 8 digits of the key. INVALID_ARGUMENT if neither
// XDG_CACHE_HOME nor HOME is set.
absl::StatusOr<std::string> CacheDirectoryOf(const Arguments& arguments, const Machine& machine,
                                             const Console& console);

}  // namespace cachewarm::cli
