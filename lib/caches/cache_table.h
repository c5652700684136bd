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

// "torchinductor", "triton", ...: every preset, in the order of the documentation.
const std::vector<std::string>& PresetNames();

struct CacheKind;

// The caches of one warmup: which variables point them below api::kMountPath, and what each file
// is. Immutable after Make; thread-safe.
class CacheTable {
 public:
  // `choices` as in spec.caches: none means every preset. A choice with `env` is the user's own
  // cache: name [a-z0-9-]{1,40} and no preset's, env a variable that no other cache sets, path
  // (default: the name) disjoint from every other cache, at most 32 globs ("*" within a directory,
  // "**" across, "?" one character; none means "**") of printable ASCII, 8 KiB in all.
  // INVALID_ARGUMENT names the field ("spec.caches[2].env: ...").
  static absl::StatusOr<CacheTable> Make(const std::vector<api::CacheChoice>& choices);
  // All presets, no user caches.
  static const CacheTable& AllPresets();

  // Sorted by name, each once.
  std::vector<api::EnvVar> Env() const;
  Placement Classify(std::string_view path) const;
  // Directories that exist in every generation, so that an engine never has to make one as
  // another user: the first component of each cache's path, sorted.
  std::vector<std::string> Directories() const;

  // Of `present` (paths of a generation) those that a capture takes when the engine was seen to
  // use `used`: the carried ones that were used, their units, and what is always taken. Keeps the
  // order of `present`.
  std::vector<std::string> SelectUsed(const std::vector<std::string>& present,
                                      const std::set<std::string, std::less<>>& used) const;

 private:
  CacheTable() = default;

  std::vector<const CacheKind*> kinds_;
  std::vector<api::CacheChoice> user_;
};

}  // namespace cachewarm::caches
