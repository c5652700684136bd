// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/sync/warmup_mount.h"
#include "lib/base/digest.h"

// Names of trees, the directories below .gen of the root (agent/tree/root_layout.h).
namespace cachewarm::agent {

// Returns the name of the tree with exactly these bundles, in any order: 32 hex digits of the
// SHA-256 over warmup uid, run-as, sorted digests, `renew` and `attempt`. `renew` is a counter in
// the spec, which the operator increments to request a fresh tree of the same bundles; `attempt` is
// the number of earlier trees of these bundles that were damaged. The same input gives the same
// name on all nodes and after restarts.
std::string GenerationId(const Mount& mount, std::vector<Digest> digests, int renew = 0,
                         int attempt = 0);

// Returns the name of a cold tree (a tree without a bundle): "cold-" and 16 hex digits. `attempt`,
// from 0, numbers the cold trees of one mount.
std::string ColdId(const Mount& mount, int attempt);
bool IsColdId(std::string_view id);
// Returns true for results of GenerationId() and ColdId().
bool IsGenerationId(std::string_view id);

// Returns "retired-<id>-<number>": the name of the tree `id` after RetireForeignTrees() moved it
// aside. No link leads to such a tree.
std::string RetiredName(std::string_view id, int number);
// Returns the generation of a RetiredName(); empty for any other text.
std::string RetiredGeneration(std::string_view name);

}  // namespace cachewarm::agent
