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
// Returns INVALID_ARGUMENT if `name` is not a preset. The message quotes `name` and lists the
// presets; the caller adds the name of the field and the remedy.
absl::Status CheckPresetName(std::string_view name);
// Returns the names of the presets with variables for a proof (CacheTable::StrictEnv).
std::vector<std::string> ProvablePresetNames();

struct CacheKind;

// The caches of one warmup: the environment variables that make engines write their caches below
// api::kMountPath, and the rules that classify the files there. Immutable after Make; thread-safe.
class CacheTable {
 public:
  // Validates spec.caches and builds its table; an empty list selects DefaultPresets(). An entry
  // with `env` defines a custom cache:
  //   name     [a-z0-9-]{1,40}, not the name of a preset
  //   env      not set by any other cache
  //   path     does not overlap the path of another cache; default: the name
  //   include  at most 32 globs of printable ASCII ("*" within a directory, "**" across
  //            directories, "?" one character); empty: "**"
  // All entries together take at most 5 KiB when encoded. INVALID_ARGUMENT names the field
  // ("spec.caches[2].env: ...").
  static absl::StatusOr<CacheTable> Make(const std::vector<api::CacheChoice>& entries);
  // Returns the table of a warmup that names no cache: every preset that is not opt-in.
  static const CacheTable& DefaultPresets();
  // Returns the table with every preset, also those that are opt-in, and no custom cache.
  static const CacheTable& AllPresets();

  // Returns the environment variables to inject into pods, sorted by name, each once. Leaves out
  // those that would make an engine ignore one of `own`, the variables that the container sets
  // itself.
  std::vector<api::EnvVar> Env(const std::set<std::string, std::less<>>& own = {}) const;
  // Returns the variables that make the engines of the table exit instead of compiling (CacheKind::
  // strict), sorted by name. Empty if no kind of the table has one.
  std::vector<api::EnvVar> StrictEnv() const;
  // Returns true if the table contains the preset `name`.
  bool Selects(std::string_view name) const;
  // Returns the properties of the file `path`, relative to the root of a generation (one version of
  // the cache tree of a warmup on a node).
  Placement Classify(std::string_view path) const;
  // Returns the first component of each cache's path, sorted. The agent creates these directories
  // in every generation, because an engine that runs as another user may not be allowed to create
  // them.
  std::vector<std::string> Directories() const;

  // Selects the files to capture. `present` lists all files of a generation, `used` those that the
  // engine read or wrote. Returns the used files, the files with Placement::always, and all files
  // that must travel together with one of these (Placement::unit). Never returns a file that its
  // cache excludes. Keeps the order of `present`.
  std::vector<std::string> SelectUsed(const std::vector<std::string>& present,
                                      const std::set<std::string, std::less<>>& used) const;

 private:
  CacheTable() = default;
  static CacheTable OfPresets(bool with_opt_in);

  std::vector<const CacheKind*> kinds_;
  std::vector<api::CacheChoice> custom_;
};

}  // namespace cachewarm::caches
