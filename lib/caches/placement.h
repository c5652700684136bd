// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace cachewarm::caches {

// What a file means to the engine that owns it, and so what its file events mean
// (docs/design/0003-file-events.md).
enum class Role {
  kIndex,        // read: that entry was a hit; written: it was compiled
  kNative,       // host machine code; created: it was rebuilt
  kProbeMarker,  // written beside a native file that only probed the compiler
  kOutput,       // other product of a compile
  kContent,      // anything else that travels: says nothing about hit or miss
};

// Why a file stays behind.
enum class Skip {
  kNo,            // it travels
  kUnknownCache,  // below no cache of the table
  kNotAllowed,    // the cache's allow list does not name it
  kLock,
  kTemporary,
  kLog,
  kPrivate,     // holds values of the environment or source code of the model
  kUnsafePath,  // absolute, "..", empty component, NUL, not UTF-8, over 1024 bytes or 32 levels
};

// "lock", "temporary", ...: for logs and for people.
std::string_view SkipName(Skip skip);

// What lib/caches knows about one file from its path alone. Relative to the generation's root,
// which is what a pod sees at /var/cache/cachewarm.
struct Placement {
  Skip skip = Skip::kUnknownCache;
  std::string cache;  // "torchinductor", ..., or the name of the user's own; empty when unknown
  Role role = Role::kContent;
  bool native = false;      // host code of one CPU class: binds the bundle to it
  bool keep_mtime = false;  // the engine compares nanosecond mtimes; else they travel as 0
  bool writable = false;    // 0666 in a generation: the engine rewrites it in place
  bool hard_link = false;   // may share its inode with another generation
  bool in_place = false;    // written under its final name: may be torn while a writer has it open
  bool always = false;      // captured even when no event showed it in use (engines only stat it)
  // A directory renamed into place is a finished compile (DeepGEMM, TileLang), not a hit that is
  // unpacked again (Triton below Inductor).
  bool directory_is_write = false;
  // Files of one unit are useless, or fatal, without each other: captured together or not at all.
  std::string unit;

  bool carried() const { return skip == Skip::kNo; }
  // Permission bits in a generation: 0444 or 0666.
  unsigned mode() const { return writable ? 0666U : 0444U; }
};

}  // namespace cachewarm::caches
