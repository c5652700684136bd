// SPDX-License-Identifier: Apache-2.0
#include "agent/watch/own_node_cache.h"

#include <utility>

#include "lib/base/status.h"

namespace cachewarm::agent {

OwnNodeCache::OwnNodeCache(const kube::Runtime& runtime, std::string node_name, Handler handler)
    : log_(runtime.log),
      node_name_(std::move(node_name)),
      handler_(std::move(handler)),
      reflector_(runtime,
                 {.resource = kube::kNodeCaches, .field_selector = "metadata.name=" + node_name_}) {
  reflector_.OnChange([this](const kube::Change& change) { OnChange(change); });
}

void OwnNodeCache::OnChange(const kube::Change& change) {
  if (kube::NameOf(change.object()).name != node_name_) {
    return;
  }
  if (change.after == nullptr) {
    handler_(nullptr);
    return;
  }
  absl::StatusOr<api::NodeCache> decoded = api::DecodeNodeCache(*change.after);
  if (!decoded.ok()) {
    // Keep the previous spec. This agent may be unable to decode a NodeCache that another version
    // wrote, and must then not drop the work of the previous spec.
    log_.Error("cannot decode NodeCache; keeping the previous spec",
               {{"node", node_name_}, {"err", Message(decoded.status())}});
    return;
  }
  handler_(std::make_shared<const api::NodeCache>(*std::move(decoded)));
}

}  // namespace cachewarm::agent
