// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/kube/client/client.h"
#include "lib/kube/runtime/controller.h"
#include "operator/metrics.h"
#include "operator/observe/cluster_cache.h"
#include "operator/plan/nodes/decision.h"

namespace cachewarm::controllers {

// Creates a NodeCache, owned by the Node, for every Linux node, so that an agent can report before
// any warmup exists, and keeps its spec.node equal to the accelerators in the Node and its
// ResourceSlices. Confirms in spec.evict which trees the agent may remove. Replaces the NodeCache
// of a node that was recreated under the same name, because the old report describes another
// machine. As operator/plan/nodes decides, removes the cachewarm startup taint from nodes of every
// operating system. The work queue key is the node's name.
class Nodes {
 public:
  struct Dependencies {
    kube::Client& client;
    const Clock& clock;
    const op::Metrics& metrics;
    Log& log;
    model::Settings settings;
    std::string agent_namespace;
  };

  // All references must outlive this object.
  Nodes(const observe::ClusterCache& cluster, Dependencies deps)
      : cluster_(cluster), deps_(std::move(deps)) {}

  absl::StatusOr<kube::Outcome> Reconcile(const std::string& key, std::stop_token stop);

 private:
  absl::Status Delete(const api::NodeCache& node_cache, std::stop_token stop);
  absl::StatusOr<kube::Outcome> UpdateNode(const std::shared_ptr<const api::Node>& node,
                                           std::stop_token stop);
  plan::NodeObservation Observe(const std::shared_ptr<const api::Node>& node) const;
  // Removes the startup taints. Returns false if the API server no longer has the node as in
  // `node`; the caller then tries again later.
  absl::StatusOr<bool> RemoveTaints(const api::Node& node, std::string_view why,
                                    std::stop_token stop);

  const observe::ClusterCache& cluster_;
  Dependencies deps_;
};

}  // namespace cachewarm::controllers
