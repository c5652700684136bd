// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// Makes the journal (the records below .state) consistent with the links on disk. Drops the last
// activation of a mount if a crash prevented the flip of its link, and removes records of trees
// that no longer exist. Call at start, after SweepLeftovers().
absl::Status RepairJournal(const fs::Dir& root, WallTime now);

}  // namespace cachewarm::agent
