// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "operator/model/snapshot.h"
#include "operator/observe/cluster_cache.h"

namespace cachewarm::observe {

// Inputs of a snapshot that do not come from the ClusterCache. model::Snapshot describes the
// members that have the same name there. `refused_jobs` are the Jobs whose creation the API server
// rejected; the snapshot lists them in `jobs`.
struct ObserveInputs {
  WallTime now{};
  model::Settings settings;
  std::string factor_salt;
  model::AdmissionDryRun dry_run;
  std::string admission_missing;
  std::vector<model::BuildRequestsState> build_requests;
  std::vector<model::EngineReport> engine_reports;
  std::vector<model::BuilderJob> refused_jobs;
  model::ReleaseRefusal release_refusal;
  std::string agent_namespace;  // namespace of the agents' pods
};

// Returns a snapshot of `warmup` from the stores. For a deleted warmup, pass a CacheWarmup with
// `deleting` set: the objects that remain of it are found by namespace, name and uid.
model::Snapshot Observe(const ClusterCache& cluster, const api::CacheWarmup& warmup,
                        const ObserveInputs& inputs);

// Returns the view of one node. `node` must be from `cluster`.
model::NodeView ObserveNode(const ClusterCache& cluster, const std::string& agent_namespace,
                            const std::shared_ptr<const api::Node>& node);

// Returns the part of a snapshot that plan::EvaluateReadiness() reads: one node, and pods only if
// the pod template is read from them (with spec.selector).
model::Snapshot ObserveOnNode(const ClusterCache& cluster, const api::CacheWarmup& warmup,
                              const ObserveInputs& inputs, const model::NodeView& node);

}  // namespace cachewarm::observe
