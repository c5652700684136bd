// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "agent/tree/links.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// Machine code belongs to one GPU type and CPU class, and engines do not look. When this root was
// last used by a node of another kind (a disk or machine image moved, a virtual machine that came
// back on other hardware), every link is flipped to an empty tree and every older tree is put
// aside as ".gen/retired-*", where no link can lead; containers that still run keep what they
// mounted. Then remembers `node`. Returns how many trees were retired. At start, after
// SweepLeftovers() and before anything else; a kill in between is made good by the next start.
absl::StatusOr<int> RetireForeignTrees(const fs::Dir& root, const std::string& node,
                                       const PrepareOptions& options);

}  // namespace cachewarm::agent
