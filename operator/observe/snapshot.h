// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "operator/observe/world.h"
#include "operator/plan/snapshot.h"

namespace cachewarm::observe {

// What a snapshot holds beside the stores.
struct Circumstances {
  WallTime now{};
  plan::Settings settings;
  plan::Rehearsal rehearsal;
  std::string admission_missing;
  std::string agent_namespace;  // where the agents' pods run
};

// Label of an agent's pod (manifests/agent.yaml).
inline constexpr std::string_view kAgentLabel = "app.kubernetes.io/component";
inline constexpr std::string_view kAgentLabelValue = "agent";

// Everything about `warmup` at one moment, from the stores. `warmup` may be made up, with
// `deleting` set, for one that is gone: what it left behind is found by its namespace, name and
// uid.
plan::Snapshot Observe(const World& world, const api::CacheWarmup& warmup,
                       const Circumstances& circumstances);

}  // namespace cachewarm::observe
