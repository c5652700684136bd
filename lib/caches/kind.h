// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/caches/placement.h"

// For use inside lib/caches and its tests only: the description of one cache kind. Each kind is a
// file in kinds/ and a row in kinds/table.inc; no other place names it.
namespace cachewarm::caches {

// An environment variable that makes the engine use a directory below the mount.
struct EnvRow {
  std::string_view name;
  // "@" means the kind's directory below the mount; anything else is the literal value.
  std::string_view value = "@";
};

// Says which part of a path is the name of its unit (Placement::unit).
struct UnitRule {
  int components = 0;  // number of leading path components; 0: no unit
  bool stem = false;   // the unit is the directory and the file name up to its first "."
};

// Properties, as in Placement, of the files that match `glob` (relative to the kind's directory).
// The first matching row applies; files that match no row are not captured.
struct FileRow {
  std::string_view glob;
  Role role = Role::kContent;
  Skip skip = Skip::kNo;
  bool native = false;
  bool keep_mtime = false;
  bool writable = false;
  bool hard_link = true;
  bool in_place = false;
  bool always = false;
  UnitRule unit = {};
};

// A directory of this kind that holds files of another kind. With `silent` the entries in it do not
// count as hit or miss, because the engine writes them again when it loads them.
struct NestedRow {
  std::string_view directory;  // glob with as many path components as the directory
  std::string_view kind;
  bool silent = false;
};

struct CacheKind {
  std::string_view name;
  std::string_view path;  // one component below the mount
  // Directories that the engine appends to `path`; `files` are relative to them.
  std::string_view root = {};
  std::vector<EnvRow> env;
  std::vector<NestedRow> nested;
  std::vector<FileRow> files;
  bool directory_is_write = false;
};

// Returns every kind, in the order of the table.
const std::vector<CacheKind>& AllKinds();
// Returns nullptr if no kind has that name.
const CacheKind* FindKind(std::string_view name);

// Returns the reason to skip the file `path` that applies in every kind, found by the components of
// the path: locks, temporary files, logs and private files. Returns Skip::kNo for other files.
Skip CommonSkip(std::string_view path);

// Returns the properties of the file `path`, relative to the kind's directory. `prefix` is put
// before the name of its unit.
Placement ClassifyInKind(const CacheKind& kind, std::string_view path, std::string_view prefix);

// Returns the rows for modules that ninja builds, one directory each: a row for the object, which
// an engine opens to find the module, and one for the files beside it. ninja compares the mtimes of
// objects, sources and its own log to the nanosecond, and rewrites files in place.
std::vector<FileRow> NinjaRows(std::string_view objects, std::string_view rest, UnitRule module);

// TorchInductorKind(), TritonKind(), ...: one function per row of the table.
#define CW_CACHE_KIND(name) CacheKind name##Kind();
#include "lib/caches/kinds/table.inc"
#undef CW_CACHE_KIND

}  // namespace cachewarm::caches
