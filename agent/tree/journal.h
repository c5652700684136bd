// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// Brings the journal in line with the links, which are the truth: notes that no flip followed are
// dropped, records of trees that are gone are removed. At start, after SweepLeftovers().
absl::Status RepairJournal(const fs::Dir& root, WallTime now);

}  // namespace cachewarm::agent
