// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/caches/placement.h"

// Internal to lib/caches and its tests: the description of one kind of cache. To add a kind, add a
// file to kinds/ and a row to kinds/table.inc.
namespace cachewarm::caches {

// An environment variable that makes the engine use a directory below the mount.
struct EnvRow {
  std::string_view name;
  // A leading "@" or "unix://@" stands for the kind's directory below the mount; anything else is
  // the literal value.
  std::string_view value = "@";
  // Another variable of the engine, which `name` would override. A container that sets that
  // variable itself does not get `name`. Empty: there is no such variable.
  std::string_view unless = {};
};

// Returns the value of the variable if the kind's directory is `directory`.
std::string ValueOf(const EnvRow& row, std::string_view directory);

// Selects the part of a path that names the unit of the file: the group of files that must travel
// together (Placement::unit).
struct UnitRule {
  int components = 0;  // the unit is this many leading path components; 0: no unit, unless `stem`
  bool stem = false;   // the unit is the path up to the first "." of the file name
};

// Properties (see Placement) of the files that match `glob`, which is relative to the directory of
// the kind. The first matching row applies; files that match no row are not captured.
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
  bool may_hold_cpp = false;
  bool own_paths = false;
  bool autotune = false;  // holds choices of an autotuner (Placement::autotune_set)
  UnitRule unit = {};
};

// A directory inside the directory of a cache kind that holds files of another cache kind. If
// `silent` is set, the entries in it count neither as hit nor as miss, because the engine writes
// them again each time it loads them.
struct NestedRow {
  // Glob; its components match the leading components of a path one by one.
  std::string_view directory;
  std::string_view kind;
  bool silent = false;
};

// A place where a file names the version of an engine.
struct VersionRow {
  enum class Place {
    kPath,           // component number `component` of the path, without the prefix `before`
    kJsonMember,     // in JSON, the value of the member with the name `before`
    kPickledMember,  // the first version after the pickled attribute name `before`
    kPickledFirst,   // the version is the first object of the pickle
  };
  std::string_view engine;
  std::string_view glob;  // matches the files, relative to the directory of the kind
  Place place = Place::kPath;
  std::string_view before = {};
  int component = 0;  // zero-based
};

// Sentences about a kind for users, printed by "cachewarm caches".
struct KindFacts {
  std::string_view engine;  // the engine that writes the files
  // How the kind was verified: the version that was run, or the source of the layout.
  std::string_view proof;
  std::string_view absolute_paths;  // absolute paths in the files or in their keys
  std::string_view hit;             // the files that a hit reads
  std::string_view miss;            // the files that a miss writes, and how
};

struct CacheKind {
  std::string_view name;
  std::string_view path;  // directory below the mount; one component
  // Directories that the engine itself appends to `path`; the globs of `files` are relative to
  // them.
  std::string_view root = {};
  std::vector<EnvRow> env;
  // Variables that make the engine exit instead of compiling code that the cache lacks.
  std::vector<EnvRow> strict = {};
  std::vector<NestedRow> nested = {};
  std::vector<FileRow> files;
  std::vector<VersionRow> versions = {};
  bool directory_is_write = false;
  // Globs, relative to the directory of the kind, of locks that are held as long as their file
  // exists (Placement::baton).
  std::vector<std::string_view> batons = {};
  // The reason why the kind is selected only if spec.caches names it; empty: it is also selected by
  // default.
  std::string_view opt_in = {};
  KindFacts facts = {};
};

// Returns every kind, in the order of kinds/table.inc.
const std::vector<CacheKind>& AllKinds();
// Returns nullptr if no kind has that name.
const CacheKind* FindKind(std::string_view name);

// Applies the rules that are common to all kinds: returns why a lock, temporary file, log or
// private file is skipped, and Skip::kNo for other files. Considers only the names in `path`.
Skip CommonSkip(std::string_view path);

// Returns the properties of the file `path`, relative to the kind's directory. `prefix` is
// prepended to Placement::unit.
Placement ClassifyInKind(const CacheKind& kind, std::string_view path, std::string_view prefix);

// Returns the rows for modules that ninja builds, each in its own directory. `objects` matches the
// shared object (.so) of a module. An engine opens it whenever it loads the module, so reading it
// counts as a hit. `rest` matches the other files of the directory. All are writable and keep their
// mtimes: ninja rewrites files in place and compares the mtimes of its outputs, their sources and
// its own log to the nanosecond.
std::vector<FileRow> NinjaRows(std::string_view objects, std::string_view rest, UnitRule module);

// Declares one function per row of kinds/table.inc: TorchInductorKind(), TritonKind(), ...
#define CW_CACHE_KIND(name) CacheKind name##Kind();
#include "lib/caches/kinds/table.inc"
#undef CW_CACHE_KIND

}  // namespace cachewarm::caches
