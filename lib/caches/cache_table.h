// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/api/cache_warmup.h"
#include "lib/caches/placement.h"

namespace cachewarm::caches {

// Returns the names of the presets, which are the cache kinds that cachewarm knows:
// "torchinductor", "triton", ..., in the order of docs/reference/caches.md.
const std::vector<std::string>& PresetNames();
// INVALID_ARGUMENT if `name` is no preset. The message quotes `name` and lists the presets; the
// caller adds the field's name and what to do.
absl::Status CheckPresetName(std::string_view name);

struct CacheKind;

// The caches of one warmup: the variables that point engines below api::kMountPath, and the rules
// that classify each file. Immutable after Make; thread-safe.
class CacheTable {
 public:
  // Validates spec.caches and builds its table; an empty list selects every preset. An entry with
  // `env` is a custom cache. Its name is [a-z0-9-]{1,40} and not a preset's; no other cache
  // sets its env; its path (default: the name) overlaps no other cache's; it has at most 32 globs
  // of printable ASCII ("*" within a directory, "**" across directories, "?" one character; none
  // means "**"). All entries together take at most 8 KiB.
  // INVALID_ARGUMENT names the field ("spec.caches[2].env: ...").
  static absl::StatusOr<CacheTable> Make(const std::vector<api::CacheChoice>& entries);
  // Returns the table with every preset and no custom cache.
  static const CacheTable& AllPresets();

  // Returns the environment variables to inject into pods, sorted by name, each once.
  std::vector<api::EnvVar> Env() const;
  // Returns the properties of the file `path`, relative to a generation's root.
  Placement Classify(std::string_view path) const;
  // Returns the first component of each cache's path, sorted. The agent creates these directories
  // in every generation, because an engine that runs as another user could not.
  std::vector<std::string> Directories() const;

  // Returns the paths of `present` (all files of a generation) that a capture takes, if the engine
  // used the files `used`: the used files that are captured at all, the other files of their units,
  // and files marked `always`. Keeps the order of `present`.
  std::vector<std::string> SelectUsed(const std::vector<std::string>& present,
                                      const std::set<std::string, std::less<>>& used) const;

 private:
  CacheTable() = default;

  std::vector<const CacheKind*> kinds_;
  std::vector<api::CacheChoice> custom_;
};

}  // namespace cachewarm::caches
