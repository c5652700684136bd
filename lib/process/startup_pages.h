// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// Drops pages that only the start of the program reads: symbol tables, relocations, initialisers.
// They stay resident while memory is plentiful; after its start the operator reads less than half
// of its 18 MB of them.
namespace cachewarm::process {

// A range of addresses in whole pages.
struct Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;

  bool operator==(const Mapping&) const = default;
};

// Returns the private, read-only mappings of files in the text of /proc/PID/smaps
// (proc_pid_smaps(5)) of which no page differs from the file. Skips mappings whose state is
// unknown. Pure.
std::vector<Mapping> UnchangedFiles(const std::string& smaps);

// Removes these mappings from the resident set; later reads load them from the page cache. Returns
// their bytes, resident or not. UNAVAILABLE if /proc cannot be read; nothing has changed then. For
// daemons, after all libraries are loaded.
absl::StatusOr<size_t> DropStartupPages();

}  // namespace cachewarm::process
