// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// Drops file pages from memory after the start of a program. Many of them are needed only during
// the start: symbol tables, relocations, initialisers. The kernel keeps them in memory while memory
// is plentiful: an operator has 18 MB of file pages and needs less than half after its start.
namespace cachewarm::process {

// A range of addresses in whole pages.
struct Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;

  bool operator==(const Mapping&) const = default;
};

// Parses the text of /proc/PID/smaps (proc_pid_smaps(5)). Returns those private, read-only mappings
// of files whose pages all equal the file. Skips a mapping if the text does not say whether its
// pages differ from the file (no line "Anonymous:"). Pure.
std::vector<Mapping> UnchangedFiles(const std::string& smaps);

// Removes the mappings of UnchangedFiles() from the resident set; later reads load them from the
// page cache. Returns the size of these mappings in bytes; pages that were not resident count, too.
// If /proc cannot be read, returns an error and changes nothing. Daemons call it after all
// libraries are loaded.
absl::StatusOr<size_t> DropStartupPages();

}  // namespace cachewarm::process
