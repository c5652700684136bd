// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/kind.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/caches/glob.h"

namespace cachewarm::caches {
namespace {

constexpr int kNestingMax = 4;
constexpr std::string_view kSocketScheme = "unix://";

bool IsLock(std::string_view name) {
  return name == "lock" || name == "locks" || name == ".lockfile" || name == ".ninja_lock" ||
         name.ends_with(".lock");
}

// True for names that a writer uses until it renames the file or directory to its final name.
bool IsTemporary(std::string_view name) {
  return name == "tmp" || name.starts_with(".staging") || name.starts_with("tmp.") ||
         name.ends_with(".tmp") || name.find(".tmp.") != std::string_view::npos ||
         name.starts_with(".nfs");
}

// Returns the first `count` components of `path`; empty if no other component follows them.
std::string_view Leading(std::string_view path, int count) {
  size_t end = 0;
  for (int i = 0; i < count; ++i) {
    end = path.find('/', i == 0 ? 0 : end + 1);
    if (end == std::string_view::npos) {
      return {};
    }
  }
  return path.substr(0, end);
}

std::string UnitOf(const FileRow& row, std::string_view path, std::string_view prefix) {
  if (row.unit.components > 0) {
    const std::string_view unit = Leading(path, row.unit.components);
    return unit.empty() ? std::string() : fmt::format("{}/{}", prefix, unit);
  }
  if (row.unit.stem) {
    const size_t name = path.rfind('/') + 1;
    return fmt::format("{}/{}", prefix, path.substr(0, path.find('.', name)));
  }
  return {};
}

int Depth(std::string_view path) {
  return static_cast<int>(std::count(path.begin(), path.end(), '/')) + 1;
}

Placement Classify(const CacheKind& kind, std::string_view path, std::string_view prefix,
                   int nesting) {
  for (const NestedRow& nested : kind.nested) {
    const int depth = Depth(nested.directory);
    const std::string_view directory = Leading(path, depth);
    if (directory.empty() || nesting >= kNestingMax || !GlobMatches(nested.directory, directory)) {
      continue;
    }
    const CacheKind* inner = FindKind(nested.kind);
    if (inner == nullptr) {
      continue;
    }
    Placement placement = Classify(*inner, path.substr(directory.size() + 1),
                                   fmt::format("{}/{}", prefix, directory), nesting + 1);
    if (nested.silent && placement.role == Role::kIndex) {
      placement.role = Role::kOutput;
    }
    return placement;
  }
  Placement placement{.skip = Skip::kNotAllowed,
                      .cache = std::string(kind.name),
                      .unit = {},
                      .autotune_set = {},
                      .below = prefix.size() + 1};
  placement.baton = std::any_of(kind.batons.begin(), kind.batons.end(),
                                [path](std::string_view glob) { return GlobMatches(glob, path); });
  if (placement.baton) {
    placement.skip = Skip::kLock;
    return placement;
  }
  for (const FileRow& row : kind.files) {
    if (GlobMatches(row.glob, path)) {
      placement.skip = row.skip;
      placement.role = row.role;
      placement.native = row.native;
      placement.keep_mtime = row.keep_mtime;
      placement.writable = row.writable;
      placement.hard_link = row.hard_link && !row.writable;
      placement.in_place = row.in_place;
      placement.always = row.always;
      placement.may_hold_cpp = row.may_hold_cpp;
      placement.own_paths = row.own_paths;
      placement.directory_is_write = kind.directory_is_write;
      placement.unit = UnitOf(row, path, prefix);
      if (row.autotune) {
        placement.autotune_set = placement.unit.empty() ? std::string(prefix) : placement.unit;
      }
      break;
    }
  }
  return placement;
}

}  // namespace

const std::vector<CacheKind>& AllKinds() {
  static const std::vector<CacheKind> kinds = {
#define CW_CACHE_KIND(name) name##Kind(),
#include "lib/caches/kinds/table.inc"
#undef CW_CACHE_KIND
  };
  return kinds;
}

std::string ValueOf(const EnvRow& row, std::string_view directory) {
  const std::string_view scheme = row.value.starts_with(kSocketScheme) ? kSocketScheme : "";
  const std::string_view rest = row.value.substr(scheme.size());
  return rest.starts_with('@') ? fmt::format("{}{}{}", scheme, directory, rest.substr(1))
                               : std::string(row.value);
}

const CacheKind* FindKind(std::string_view name) {
  for (const CacheKind& kind : AllKinds()) {
    if (kind.name == name) {
      return &kind;
    }
  }
  return nullptr;
}

Skip CommonSkip(std::string_view path) {
  std::string_view rest = path;
  while (true) {
    const size_t slash = rest.find('/');
    const std::string_view name = rest.substr(0, slash);
    if (IsLock(name)) {
      return Skip::kLock;
    }
    if (IsTemporary(name)) {
      return Skip::kTemporary;
    }
    if (slash == std::string_view::npos) {
      break;
    }
    rest.remove_prefix(slash + 1);
  }
  if (rest.ends_with(".log")) {
    return Skip::kLog;
  }
  return rest == "cache_key_factors.json" ? Skip::kPrivate : Skip::kNo;
}

std::vector<FileRow> NinjaRows(std::string_view objects, std::string_view rest, UnitRule module) {
  FileRow row = {.glob = objects,
                 .role = Role::kIndex,
                 .native = true,
                 .keep_mtime = true,
                 .writable = true,
                 .in_place = true,
                 .unit = module};
  std::vector<FileRow> rows = {row};
  row.glob = rest;
  row.role = Role::kOutput;
  rows.push_back(row);
  return rows;
}

Placement ClassifyInKind(const CacheKind& kind, std::string_view path, std::string_view prefix) {
  return Classify(kind, path, prefix, 0);
}

}  // namespace cachewarm::caches
