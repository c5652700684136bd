// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/caches/placement.h"

namespace cachewarm::caches {

// Where every pod, builder or user, sees its generation: several engines hash or store it.
inline constexpr std::string_view kMountPath = "/var/cache/cachewarm";

struct EnvVariable {
  std::string name;
  std::string value;

  friend bool operator==(const EnvVariable&, const EnvVariable&) = default;
};

// A cache that the user describes: `env` is set to kMountPath/`path`, and the files below it that
// match one of `include` travel ("*" within a directory, "**" across, "?" one character).
struct UserCache {
  std::string name;                  // [a-z0-9-]{1,40}, no preset's name
  std::string env;                   // [A-Za-z_][A-Za-z0-9_]{0,127}, set by no other cache
  std::string path;                  // below the mount; default: the name; disjoint from others
  std::vector<std::string> include;  // at most 32 of at most 256 bytes; default: "**"
};

// "torchinductor", "triton", ...: every preset, in the order of the documentation.
const std::vector<std::string>& PresetNames();

struct CacheKind;

// The caches of one warmup: which variables point them below the mount, and what each file is.
// Immutable after Make; thread-safe.
class CacheTable {
 public:
  // No presets means all of them. INVALID_ARGUMENT names the field of the CacheWarmup
  // ("spec.caches[2].env: ...").
  static absl::StatusOr<CacheTable> Make(const std::vector<std::string>& presets,
                                         const std::vector<UserCache>& user);
  // All presets, no user caches.
  static const CacheTable& AllPresets();

  // Sorted by name, each once.
  std::vector<EnvVariable> Env() const;
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
  std::vector<UserCache> user_;
};

// Env() of Make(presets, user).
absl::StatusOr<std::vector<EnvVariable>> PresetEnv(const std::vector<std::string>& presets,
                                                   const std::vector<UserCache>& user);

}  // namespace cachewarm::caches
