// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cachewarm::caches {

// The purpose of a file for its engine. It decides what a file event means
// (docs/design/0003-file-events.md).
enum class Role {
  kIndex,        // cache entry: a read is a hit, a write means that it was compiled
  kNative,       // host machine code; its creation means that it was built again
  kProbeMarker,  // marks the native file beside it as a mere test of the compiler
  kOutput,       // other result of a compile: dates it, but counts neither as hit nor as miss
  kContent,      // other captured file; its events count neither as hit nor as miss
};

// The reason why a file is not captured.
enum class Skip {
  kNo,            // not skipped: the file is captured
  kUnknownCache,  // not in the directory of a known cache
  kNotAllowed,    // not on the allow list of its cache
  kLock,
  kTemporary,
  kLog,
  kPrivate,  // holds values of environment variables, or source code or weights of the model
  kColdMeasurement,  // states what a cold start measured, which is wrong for every other start
  kUnsafePath,  // absolute, "..", empty component, NUL, not UTF-8, over 1024 bytes or 32 levels
};

// Returns a name for logs and messages: "lock", "temporary", ...
std::string_view SkipName(Skip skip);

// The properties of a file, derived from its path alone. The path is relative to the generation's
// root, which pods mount at /var/cache/cachewarm.
struct Placement {
  Skip skip = Skip::kUnknownCache;
  std::string cache;  // name of the preset or custom cache; empty if unknown
  Role role = Role::kContent;
  bool native = false;        // host machine code, which binds the bundle to one CPU class
  bool keep_mtime = false;    // packed with its mtime, which the engine compares; other files get 0
  bool writable = false;      // mode 0666 in a generation, because the engine rewrites it in place
  bool hard_link = false;     // may share its inode with a file of another generation
  bool in_place = false;      // written under its final name: incomplete while a writer has it open
  bool always = false;        // captured even if no event shows its use: engines only stat it
  bool may_hold_cpp = false;  // may hold C++ kernels: their text, or their compiled graph
  bool own_paths = false;     // contains absolute paths of files in its directory (relocate.h)
  // True if a directory that is renamed into place is the result of a compile (DeepGEMM, TileLang).
  // False if the engine also renames directories on a hit (Triton below Inductor).
  bool directory_is_write = false;
  // A lock that is held as long as its file exists, such as torch's FileBaton. A process that is
  // killed leaves it behind, and every later process waits for it forever.
  bool baton = false;
  // Name of the unit: a group of files that are captured together or not at all, because without
  // each other they are useless or crash the engine. Empty: the file has no unit.
  std::string unit;
  // Name of the set of autotune results to which the file belongs: the unit, or the directory of
  // `cache`. The results of one set come from one generation
  // (docs/design/0028-autotune-results-of-one-generation.md). Empty: no autotune result.
  std::string autotune_set;
  // Index in the path at which the part relative to the directory of `cache` begins; 0 if unknown.
  size_t below = 0;

  bool carried() const { return skip == Skip::kNo; }
  // Returns the permission bits of the file in a generation: 0444 or 0666.
  unsigned mode() const { return writable ? 0666U : 0444U; }
};

}  // namespace cachewarm::caches
