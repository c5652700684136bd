// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/kube/client/client.h"
#include "lib/kube/runtime/controller.h"
#include "operator/observe/world.h"

namespace cachewarm::controllers {

// Sees to it that every Linux node has its NodeCache, owned by the Node, so that an agent can
// report before any warmup exists. A node that was replaced under its old name gets a fresh
// NodeCache: what the old machine reported says nothing about the new one. The key is the node's
// name.
class Nodes {
 public:
  // Both must outlive it.
  Nodes(kube::Client& client, const observe::World& world) : client_(client), world_(world) {}

  absl::StatusOr<kube::Outcome> Reconcile(const std::string& key, std::stop_token stop);

 private:
  absl::Status Delete(const api::NodeCache& node_cache, std::stop_token stop);

  kube::Client& client_;
  const observe::World& world_;
};

}  // namespace cachewarm::controllers
