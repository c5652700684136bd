// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/nodes.h"

#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "operator/render/applied.h"

namespace cachewarm::controllers {
absl::Status Nodes::Delete(const api::NodeCache& node_cache, std::stop_token stop) {
  const auto deleted = client_.Do(
      kube::Delete(kube::kNodeCaches, {.name = node_cache.name}, {.uid = node_cache.uid}), stop);
  return deleted.ok() || absl::IsNotFound(deleted.status()) ? absl::OkStatus() : deleted.status();
}

absl::StatusOr<kube::Outcome> Nodes::Reconcile(const std::string& key, std::stop_token stop) {
  const auto node = world_.node_views.Get({.name = key});
  const auto node_cache = world_.node_cache_views.Get({.name = key});
  const bool wanted = node != nullptr && node->os == "linux" && !node->meta.deleting;
  const bool owned = node_cache != nullptr && !node_cache->node_uid.empty();
  if (node_cache != nullptr && (!wanted || (owned && node_cache->node_uid != node->meta.uid))) {
    CW_RETURN_IF_ERROR(Delete(*node_cache, stop));
    // Its disappearance comes back as a change and makes the new one.
    return kube::Outcome{};
  }
  if (wanted && !owned) {
    auto applied =
        client_.Do(kube::Apply(kube::kNodeCaches, render::NodeCacheBase(key, node->meta.uid),
                               {.field_manager = std::string(api::kOperatorManager)}),
                   stop);
    if (!applied.ok()) {
      return applied.status();
    }
  }
  return kube::Outcome{};
}

}  // namespace cachewarm::controllers
