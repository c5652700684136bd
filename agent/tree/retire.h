// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "agent/tree/links.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// Retires all trees if this root was last used by a node with another GPU type or CPU class, for
// example before a disk or virtual machine was moved. Code that was compiled there may crash here,
// and engines do not check for that. Flips every link to an empty tree, and renames older trees to
// ".gen/retired-*", which no link can lead to; running containers keep their mounted trees. Then
// records `node`, the GPU type and CPU class of this node, as the last user of the root. Returns
// the number of retired trees. Call at start, after SweepLeftovers() and before any other step. If
// the agent is killed during the call, the call at its next start completes the work.
absl::StatusOr<int> RetireForeignTrees(const fs::Dir& root, const std::string& node,
                                       const PrepareOptions& options);

// Returns the text that identifies a node with this GPU type and CPU class. An empty `gpu_type` is
// unknown, because the driver does not answer: the type that the root was last used with is assumed
// then. Returns "" if that is unknown too; the caller then does not retire.
std::string NodeRecord(const fs::Dir& root, const std::string& gpu_type,
                       const std::string& cpu_class);

}  // namespace cachewarm::agent
