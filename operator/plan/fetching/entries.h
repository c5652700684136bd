// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/plan/fetching/turns.h"
#include "operator/plan/round.h"

// The entries of one NodeCache that belong to this warmup: what stands there and what should. Pure.
namespace cachewarm::plan {

// What the nodes should have, the same for all of them but for their targets and turns.
struct Wanted {
  std::vector<std::vector<api::WantedBundle>> by_target;  // as Round::targets
  std::vector<std::string> run_as;                        // directories to prepare
  Turns turns;
};

bool Names(const std::vector<api::WantedBundle>& bundles, const Digest& digest);

// What `node` was told about this warmup; nullptr: nothing.
const api::WantedWarmup* PresentEntry(const Round& round, const NodeState& node);

// Nothing is told to `node` about this warmup, and as many others are in its NodeCache as go there.
bool IsFull(const Round& round, const NodeState& node);

// The node would have to fetch `digest`, and was not told to yet.
bool Asks(const Round& round, const NodeState& node, const Digest& digest);

// What the node, an index of Round::nodes with a NodeCache, should be told in place of what it was;
// nothing where that is the same.
std::optional<api::NodeCacheSpec> ChangedEntries(const Round& round, const Wanted& wanted,
                                                 size_t node);

}  // namespace cachewarm::plan
