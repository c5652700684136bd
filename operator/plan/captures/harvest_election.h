// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "operator/plan/plan_context.h"

// Chooses the node whose late units are added to the bundle of a key. Pure.
namespace cachewarm::plan {

struct HarvestCandidate {
  size_t node = 0;  // index into Context::nodes
  const PodView* pod = nullptr;
  const api::Harvestable* offer = nullptr;  // points into the Context
};

struct HarvestElection {
  std::optional<HarvestCandidate> chosen;
  // Why the nodes with late units cannot be harvested, for users; empty: there is none, or their
  // time has not come yet.
  std::string refusal;
};

// Elects, of the nodes that have the bundle and lack units in it, the one with the most units; of
// several, the first by name. Leaves out the sets in `last` (HarvestStatus::harvested_sets), nodes
// with a pod that is starting or not Ready, and nodes whose pods of the directory have several
// keys.
HarvestElection ElectHarvest(const Context& context, const Bundles& bundles, const LiveKey& key,
                             const api::HarvestStatus& last);

}  // namespace cachewarm::plan
