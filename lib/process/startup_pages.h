// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// Drops pages that are read only when the program starts: symbol tables, relocations, initialisers.
// Otherwise these pages stay resident while memory is plentiful: the operator has 18 MB of them and
// needs less than half after its start.
namespace cachewarm::process {

// A range of addresses in whole pages.
struct Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;

  bool operator==(const Mapping&) const = default;
};

// Parses the text of /proc/PID/smaps (proc_pid_smaps(5)). Returns the private, read-only mappings
// of files in which no page differs from the file. Skips a mapping if the text does not say whether
// its pages differ (no line "Anonymous:"). Pure.
std::vector<Mapping> UnchangedFiles(const std::string& smaps);

// Removes the mappings of UnchangedFiles() from the resident set; later reads load them from the
// page cache. Returns the size of these mappings in bytes; pages that were not resident count, too.
// If /proc cannot be read, returns an error and changes nothing. Daemons call it after all
// libraries are loaded.
absl::StatusOr<size_t> DropStartupPages();

}  // namespace cachewarm::process
