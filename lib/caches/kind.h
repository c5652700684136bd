// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/caches/placement.h"

// Inside lib/caches only: how one cache kind is written down. Each kind is a file in kinds/.
namespace cachewarm::caches {

// A variable that points the engine below the mount.
struct EnvRow {
  std::string_view name;
  // "@" is the kind's directory below the mount; anything else is the literal value.
  std::string_view value = "@";
};

// What belongs to one unit, see Placement::unit.
struct UnitRule {
  int components = 0;  // the first that many components of the path; 0: no unit
  bool stem = false;   // directory and file name up to its first "."
};

// Files that match `glob` (relative to the kind's directory). The first match counts; what no row
// names stays behind.
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

// Another kind's files below a directory of this one. With `silent` its entries say nothing about
// hit or miss, because loading writes them again.
struct NestedRow {
  std::string_view directory;  // glob of whole components
  std::string_view kind;
  bool silent = false;
};

struct CacheKind {
  std::string_view name;
  std::string_view path;       // one component below the mount
  std::string_view root = {};  // what the engine appends to `path`; `files` are relative to it
  std::vector<EnvRow> env;
  std::vector<NestedRow> nested;
  std::vector<FileRow> files;
  bool directory_is_write = false;
};

// Every kind, in the order of the documentation.
const std::vector<CacheKind>& AllKinds();
// nullptr when there is none of that name.
const CacheKind* FindKind(std::string_view name);

// Locks, temporary names, logs and private files of every kind, by the components of `path`;
// Skip::kNo for the rest.
Skip CommonSkip(std::string_view path);

// Classifies `path`, relative to the kind's directory. `prefix` is put before the unit.
Placement ClassifyInKind(const CacheKind& kind, std::string_view path, std::string_view prefix);

// Rows of modules that ninja builds below a directory of their own: the object, by which a start
// finds the module, and everything beside it. ninja compares the mtimes of objects, sources and its
// own log to the nanosecond, and rewrites in place.
std::vector<FileRow> NinjaRows(std::string_view objects, std::string_view rest, UnitRule module);

// TorchInductorKind(), TritonKind(), ...: one function per row of the table.
#define CW_CACHE_KIND(name) CacheKind name##Kind();
#include "lib/caches/kinds/table.inc"
#undef CW_CACHE_KIND

}  // namespace cachewarm::caches
