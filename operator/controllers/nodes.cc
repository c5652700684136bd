// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/nodes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "operator/observe/observe_warmup.h"
#include "operator/plan/eviction/confirm.h"
#include "operator/plan/nodes/offer.h"
#include "operator/plan/scheduling/pod_shape.h"
#include "operator/render/applied.h"
#include "operator/render/node.h"

namespace cachewarm::controllers {
namespace {

// Retry interval while the store has an older version of the node than the API server.
constexpr Duration kNodeStaleRetry{1000};
// Interval at which unconfirmed trees are checked again: no event of the node reports that an
// unbound pod of a deleted warmup is gone.
constexpr Duration kEvictionRecheck{300'000};

kube::WriteOptions AsOperator() {
  return {.field_manager = std::string(api::kOperatorManager)};
}

// Returns the ResourceSlices of the node; omits those that cannot be decoded.
std::vector<api::ResourceSlice> SlicesOf(const observe::ClusterCache& cluster,
                                         const std::string& node) {
  std::vector<api::ResourceSlice> slices;
  for (const kube::CachedObjectPtr& object : cluster.resource_slices.store().ByIndex(node)) {
    if (auto slice = api::DecodeResourceSlice(*object->Unpack()); slice.ok()) {
      slices.push_back(*std::move(slice));
    }
  }
  return slices;
}

// Appends the pods that have the cache directory of a warmup as a volume and are bound to the node;
// for an empty name: those that are not bound yet.
void AppendPods(const observe::ClusterCache& cluster, const std::string& node,
                std::vector<plan::MountingPod>& pods) {
  for (const kube::CachedObjectPtr& object :
       cluster.pods.store().ByIndex(observe::MountsIndex(node))) {
    const auto pod = cluster.pod_views.Of(object);
    if (pod == nullptr) {
      // An unreadable pod may have mounted any tree.
      pods.push_back({.node = node});
    } else if (auto mounting = plan::MountingPodOf(*pod); mounting.has_value()) {
      pods.push_back(*std::move(mounting));
    }
  }
}

std::vector<api::EvictableTree> Evictions(const observe::ClusterCache& cluster,
                                          const std::string& node,
                                          const api::NodeCache* node_cache) {
  // Until both lists have synced, a missing pod or CacheWarmup does not mean that it is gone.
  const bool is_known = cluster.pods.store().HasSynced() && cluster.warmups.store().HasSynced();
  if (!is_known || node_cache == nullptr || node_cache->status.evictable.empty()) {
    return {};
  }
  const std::vector<api::EvictableTree>& offered = node_cache->status.evictable;
  std::vector<plan::MountingPod> pods;
  AppendPods(cluster, node, pods);
  // A rollout may leave thousands of pods unbound, so they are read only if they count.
  if (std::any_of(offered.begin(), offered.end(), [](const api::EvictableTree& tree) {
        return tree.unlinked_time == WallTime{};
      })) {
    AppendPods(cluster, "", pods);
  }
  std::set<std::string> warmups;
  for (const kube::CachedObjectPtr& object : cluster.warmups.store().List()) {
    warmups.insert(std::string(object->uid()));
  }
  return plan::ConfirmEvictions(
      {.node = node, .offered = offered, .pods = pods, .warmups = warmups});
}

bool HasAgents(const api::Node& node) {
  return node.os == "linux";
}

}  // namespace

absl::Status Nodes::Delete(const api::NodeCache& node_cache, std::stop_token stop) {
  const auto deleted = deps_.client.Do(
      kube::Delete(kube::kNodeCaches, {.name = node_cache.name}, {.uid = node_cache.uid}), stop);
  return deleted.ok() || absl::IsNotFound(deleted.status()) ? absl::OkStatus() : deleted.status();
}

absl::StatusOr<kube::Outcome> Nodes::Reconcile(const std::string& key, std::stop_token stop) {
  const auto node = cluster_.node_views.Get({.name = key});
  const auto node_cache = cluster_.node_cache_views.Get(key);
  const bool exists = node != nullptr && !node->meta.deleting;
  const bool needs_cache = exists && HasAgents(*node);
  const bool has_owner = node_cache != nullptr && !node_cache->node_uid.empty();
  if (node_cache != nullptr &&
      (!needs_cache || (has_owner && node_cache->node_uid != node->meta.uid))) {
    CW_RETURN_IF_ERROR(Delete(*node_cache, stop));
    // The deletion of the old NodeCache triggers another reconcile, which creates the new one.
    return kube::Outcome{};
  }
  if (needs_cache) {
    const api::NodeOffer offer = plan::OfferOf(*node, SlicesOf(cluster_, key));
    const std::vector<api::EvictableTree> evict = Evictions(cluster_, key, node_cache.get());
    if (!has_owner || node_cache->spec.node != offer || node_cache->spec.evict != evict) {
      auto applied = deps_.client.Do(
          kube::Apply(kube::kNodeCaches, render::NodeCacheBase(key, node->meta.uid, offer, evict),
                      AsOperator()),
          stop);
      if (!applied.ok()) {
        return applied.status();
      }
    }
  }
  kube::Outcome outcome;
  if (exists) {
    CW_ASSIGN_OR_RETURN(outcome, UpdateNode(node, stop));
  }
  if (needs_cache && node_cache != nullptr && !node_cache->status.evictable.empty()) {
    outcome.requeue_after =
        std::min(outcome.requeue_after.value_or(kEvictionRecheck), kEvictionRecheck);
  }
  return outcome;
}

absl::StatusOr<kube::Outcome> Nodes::UpdateNode(const std::shared_ptr<const api::Node>& node,
                                                std::stop_token stop) {
  if (!plan::HasStartupTaint(*node)) {
    return kube::Outcome{};
  }
  const plan::NodeDecision decision = plan::EvaluateNode(Observe(node));
  kube::Outcome outcome{.requeue_after = decision.requeue_after};
  if (!decision.remove_taints_for.empty()) {
    CW_ASSIGN_OR_RETURN(const bool removed, RemoveTaints(*node, decision.remove_taints_for, stop));
    if (!removed) {
      outcome.requeue_after = kNodeStaleRetry;
    }
  }
  return outcome;
}

plan::NodeObservation Nodes::Observe(const std::shared_ptr<const api::Node>& node) const {
  plan::NodeObservation observation{
      .now = deps_.clock.Now(),
      .view = observe::ObserveNode(cluster_, deps_.agent_namespace, node),
  };
  const observe::ObserveInputs inputs{.now = observation.now,
                                      .settings = deps_.settings,
                                      .dry_run = {},
                                      .agent_namespace = deps_.agent_namespace};
  for (const auto& warmup : cluster_.warmup_views.List()) {
    observation.readiness.push_back(plan::EvaluateReadiness(
        observe::ObserveOnNode(cluster_, *warmup, inputs, observation.view)));
  }
  return observation;
}

absl::StatusOr<bool> Nodes::RemoveTaints(const api::Node& node, std::string_view why,
                                         std::stop_token stop) {
  const auto answer =
      deps_.client.Do(kube::JsonPatch(kube::kNodes, {.name = node.meta.name},
                                      render::StartupTaintPatch(node), AsOperator()),
                      stop);
  // The node is gone, or a "test" operation of the patch failed because the taints changed and the
  // store does not have the change yet.
  if (absl::IsInvalidArgument(answer.status()) || absl::IsAborted(answer.status()) ||
      absl::IsNotFound(answer.status())) {
    return false;
  }
  if (!answer.ok()) {
    return Annotate(answer.status(), "cannot remove startup taint of node " + node.meta.name);
  }
  deps_.metrics.startup_taints.Add({std::string(why)});
  deps_.log.Info("startup taint removed",
                 {{"node", node.meta.name},
                  {"reason", why},
                  {"readySeconds",
                   std::chrono::duration<double>(deps_.clock.Now() - node.ready_since).count()}});
  return true;
}

}  // namespace cachewarm::controllers
