// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "operator/observe/world.h"
#include "operator/plan/snapshot.h"

namespace cachewarm::observe {

// What a snapshot holds beside the stores.
struct Circumstances {
  WallTime now{};
  plan::Settings settings;
  plan::Rehearsal rehearsal;
  std::string admission_missing;
  std::vector<plan::BuildRequestsState> build_requests;
  std::vector<plan::BuilderJob> refused_jobs;
  std::string agent_namespace;  // where the agents' pods run
};

// Everything about `warmup` at one moment, from the stores. `warmup` may be made up, with
// `deleting` set, for one that is gone: what it left behind is found by its namespace, name and
// uid.
plan::Snapshot Observe(const World& world, const api::CacheWarmup& warmup,
                       const Circumstances& circumstances);

// One node as a snapshot holds it. `node` is of the world.
plan::NodeView ObserveNode(const World& world, const std::string& agent_namespace,
                           const std::shared_ptr<const api::Node>& node);

// What plan::ClaimOf() needs of `warmup`: that node alone, and pods only where the template is
// learnt from them.
plan::Snapshot ObserveOnNode(const World& world, const api::CacheWarmup& warmup,
                             const Circumstances& circumstances, const plan::NodeView& node);

}  // namespace cachewarm::observe
