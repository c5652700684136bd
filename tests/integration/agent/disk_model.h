// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "tests/integration/agent/disk_log.h"

namespace cachewarm::agent {

// The files of a recorded disk that a power cut leaves.
//
// Only fsync(2) and syncfs(2) make something durable: of a file its bytes, of a directory its
// names. Each later write is kept, dropped, replaced by zeros, or kept in its first half; each
// later change of a name is kept or dropped. Moves of directories are atomic, because a directory
// has one parent.
struct PowerCut {
  size_t at = 0;  // number of events before the power cut
  unsigned seed = 0;
};

// Makes the files that are left, below the existing empty directory `path`.
void MakeDiskAfter(const DiskLog& log, const PowerCut& cut, const std::string& path);

}  // namespace cachewarm::agent
