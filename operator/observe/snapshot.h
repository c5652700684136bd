// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "operator/observe/cluster_cache.h"
#include "operator/plan/snapshot.h"

namespace cachewarm::observe {

// What a snapshot holds beside the stores.
struct ObserveInputs {
  WallTime now{};
  plan::Settings settings;
  plan::AdmissionDryRun dry_run;
  std::string admission_missing;
  std::vector<plan::BuildRequestsState> build_requests;
  std::vector<plan::BuilderJob> refused_jobs;
  std::string agent_namespace;  // where the agents' pods run
};

// Everything about `warmup` at one moment, from the stores. `warmup` may be made up, with
// `deleting` set, for one that is gone: what it left behind is found by its namespace, name and
// uid.
plan::Snapshot Observe(const ClusterCache& cluster, const api::CacheWarmup& warmup,
                       const ObserveInputs& inputs);

// One node as a snapshot holds it. `node` is of the cluster.
plan::NodeView ObserveNode(const ClusterCache& cluster, const std::string& agent_namespace,
                           const std::shared_ptr<const api::Node>& node);

// What plan::EvaluateReadiness() needs of `warmup`: that node alone, and pods only where the
// template is learnt from them.
plan::Snapshot ObserveOnNode(const ClusterCache& cluster, const api::CacheWarmup& warmup,
                             const ObserveInputs& inputs, const plan::NodeView& node);

}  // namespace cachewarm::observe
