// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/cache_table.h"

#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/api/names.h"
#include "lib/base/utf8.h"
#include "lib/caches/glob.h"
#include "lib/caches/kind.h"

namespace cachewarm::caches {
namespace {

constexpr size_t kPathMax = 1024;
constexpr int kDepthMax = 32;

bool IsSafePath(std::string_view path) {
  if (path.empty() || path.size() > kPathMax || path.find('\0') != std::string_view::npos ||
      !IsUtf8(path)) {
    return false;
  }
  int depth = 0;
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view component = path.substr(0, slash);
    if (component.empty() || component == "." || component == ".." || ++depth > kDepthMax) {
      return false;
    }
    if (slash == std::string_view::npos) {
      return true;
    }
    path.remove_prefix(slash + 1);
  }
}

// Returns `path` relative to `directory`; empty if `path` is not below `directory`.
std::string_view Below(std::string_view directory, std::string_view path) {
  return path.size() > directory.size() + 1 && path.starts_with(directory) &&
                 path[directory.size()] == '/'
             ? path.substr(directory.size() + 1)
             : std::string_view();
}

std::string DirectoryOf(const CacheKind& kind) {
  std::string directory(kind.path);
  if (!kind.root.empty()) {
    directory.append("/").append(kind.root);
  }
  return directory;
}

Placement PlaceInKind(const CacheKind& kind, std::string_view path) {
  const std::string directory = DirectoryOf(kind);
  const std::string_view below = Below(directory, path);
  if (below.empty()) {
    return {
        .skip = Skip::kNotAllowed, .cache = std::string(kind.name), .unit = {}, .autotune_set = {}};
  }
  return ClassifyInKind(kind, below, directory);
}

// The roles of the files of a custom cache are unknown, so each file gets the properties that are
// safe for every role.
Placement PlaceInCustomCache(const api::CacheChoice& cache, std::string_view below) {
  const bool included =
      cache.include.empty() ||
      std::any_of(cache.include.begin(), cache.include.end(),
                  [below](const std::string& glob) { return GlobMatches(glob, below); });
  return {.skip = included ? Skip::kNo : Skip::kNotAllowed,
          .cache = cache.name,
          .role = Role::kIndex,
          .native = true,
          .keep_mtime = true,
          .writable = true,
          .in_place = true,
          .unit = {},
          .autotune_set = {}};
}

void SortByName(std::vector<api::EnvVar>& env) {
  std::sort(env.begin(), env.end(),
            [](const api::EnvVar& a, const api::EnvVar& b) { return a.name < b.name; });
}

}  // namespace

const std::vector<std::string>& PresetNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const CacheKind& kind : AllKinds()) {
      out.emplace_back(kind.name);
    }
    return out;
  }();
  return names;
}

absl::Status CheckPresetName(std::string_view name) {
  return FindKind(name) != nullptr
             ? absl::OkStatus()
             : absl::InvalidArgumentError(
                   fmt::format("\"{}\" is not a cache kind that cachewarm knows (known: {})", name,
                               fmt::join(PresetNames(), ", ")));
}

std::vector<std::string> ProvablePresetNames() {
  std::vector<std::string> names;
  for (const CacheKind& kind : AllKinds()) {
    if (!kind.strict.empty()) {
      names.emplace_back(kind.name);
    }
  }
  return names;
}

CacheTable CacheTable::OfPresets(bool with_opt_in) {
  CacheTable table;
  for (const CacheKind& kind : AllKinds()) {
    if (with_opt_in || kind.opt_in.empty()) {
      table.kinds_.push_back(&kind);
    }
  }
  return table;
}

const CacheTable& CacheTable::DefaultPresets() {
  static const CacheTable table = OfPresets(false);
  return table;
}

const CacheTable& CacheTable::AllPresets() {
  static const CacheTable table = OfPresets(true);
  return table;
}

std::vector<api::EnvVar> CacheTable::Env(const std::set<std::string, std::less<>>& own) const {
  std::vector<api::EnvVar> env;
  for (const CacheKind* kind : kinds_) {
    for (const EnvRow& row : kind->env) {
      if (!row.unless.empty() && own.contains(row.unless)) {
        continue;
      }
      env.push_back({.name = std::string(row.name),
                     .value = ValueOf(row, fmt::format("{}/{}", api::kMountPath, kind->path))});
    }
  }
  for (const api::CacheChoice& cache : custom_) {
    env.push_back({.name = cache.env, .value = fmt::format("{}/{}", api::kMountPath, cache.path)});
  }
  SortByName(env);
  return env;
}

std::vector<api::EnvVar> CacheTable::StrictEnv() const {
  std::vector<api::EnvVar> env;
  for (const CacheKind* kind : kinds_) {
    for (const EnvRow& row : kind->strict) {
      env.push_back({.name = std::string(row.name), .value = std::string(row.value)});
    }
  }
  SortByName(env);
  return env;
}

bool CacheTable::Selects(std::string_view name) const {
  return std::any_of(kinds_.begin(), kinds_.end(),
                     [name](const CacheKind* kind) { return kind->name == name; });
}

Placement CacheTable::Classify(std::string_view path) const {
  if (!IsSafePath(path)) {
    return {.skip = Skip::kUnsafePath, .cache = {}, .unit = {}, .autotune_set = {}};
  }
  Placement placement;
  for (const CacheKind* kind : kinds_) {
    if (!Below(kind->path, path).empty()) {
      placement = PlaceInKind(*kind, path);
    }
  }
  for (const api::CacheChoice& cache : custom_) {
    if (const std::string_view below = Below(cache.path, path); !below.empty()) {
      placement = PlaceInCustomCache(cache, below);
    }
  }
  if (placement.skip != Skip::kUnknownCache) {
    if (const Skip common = CommonSkip(path); common != Skip::kNo) {
      placement.skip = common;
    }
  }
  return placement;
}

std::vector<std::string> CacheTable::Directories() const {
  std::set<std::string> directories;
  for (const CacheKind* kind : kinds_) {
    directories.emplace(kind->path);
  }
  for (const api::CacheChoice& cache : custom_) {
    directories.insert(cache.path.substr(0, cache.path.find('/')));
  }
  return {directories.begin(), directories.end()};
}

std::vector<std::string> CacheTable::SelectUsed(
    const std::vector<std::string>& present, const std::set<std::string, std::less<>>& used) const {
  std::vector<Placement> placements;
  placements.reserve(present.size());
  std::set<std::string> units;
  for (const std::string& path : present) {
    const Placement& placement = placements.emplace_back(Classify(path));
    if (placement.carried() && !placement.unit.empty() &&
        (placement.always || used.contains(path))) {
      units.insert(placement.unit);
    }
  }
  std::vector<std::string> selected;
  for (size_t i = 0; i < present.size(); ++i) {
    const Placement& placement = placements[i];
    if (placement.carried() &&
        (placement.always || used.contains(present[i]) || units.contains(placement.unit))) {
      selected.push_back(present[i]);
    }
  }
  return selected;
}

}  // namespace cachewarm::caches
