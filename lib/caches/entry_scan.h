// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/caches/placement.h"

// Facts that the files of a cache state about themselves. Only scans bytes; never executes a pickle
// and never fails: a file that does not have the expected form states nothing.
namespace cachewarm::caches {

// Files are scanned in chunks that overlap by this many bytes, so that no text that the functions
// below look for is cut.
inline constexpr size_t kScanOverlapBytes = 256;

// Returns true if the file may hold code for the CPU on which it was compiled although it is no
// object file; ContainsHostCode() finds out whether it does.
bool MayHoldHostCode(const Placement& placement);

// Returns true if `bytes` contain the source of a C++ kernel of Inductor, or the metadata of a
// kernel of Triton's CPU backend. A match binds the bundle to one CPU class, so a false match only
// makes CPUs of other classes compile again.
bool ContainsHostCode(std::string_view bytes);

// The version of an engine: {"torch", "2.13.0+cu130"}.
struct EngineVersion {
  std::string engine;
  std::string version;  // 1 to 64 characters: a digit, then digits, letters and ".+-_!"

  friend bool operator==(const EngineVersion&, const EngineVersion&) = default;
};

// Returns true if VersionsInText() may find a version in the file.
bool MayHoldVersion(const Placement& placement, std::string_view path);
// Returns the engine versions in the path of a file.
std::vector<EngineVersion> VersionsInPath(const Placement& placement, std::string_view path);
// Returns the engine versions in `bytes`, a chunk of the file at `path`. `is_first` is true for the
// first chunk.
std::vector<EngineVersion> VersionsInText(const Placement& placement, std::string_view path,
                                          std::string_view bytes, bool is_first);

}  // namespace cachewarm::caches
