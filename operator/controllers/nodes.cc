// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/nodes.h"

#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "operator/observe/snapshot.h"
#include "operator/plan/scheduling/shape.h"
#include "operator/render/applied.h"
#include "operator/render/node.h"

namespace cachewarm::controllers {
namespace {

// How soon to look again when the store is behind the node.
constexpr Duration kNodeStaleRetry{1000};

kube::WriteOptions AsOperator() {
  return {.field_manager = std::string(api::kOperatorManager)};
}

bool HasAgents(const api::Node& node) {
  return node.os == "linux";
}

}  // namespace

absl::Status Nodes::Delete(const api::NodeCache& node_cache, std::stop_token stop) {
  const auto deleted = means_.client.Do(
      kube::Delete(kube::kNodeCaches, {.name = node_cache.name}, {.uid = node_cache.uid}), stop);
  return deleted.ok() || absl::IsNotFound(deleted.status()) ? absl::OkStatus() : deleted.status();
}

absl::StatusOr<kube::Outcome> Nodes::Reconcile(const std::string& key, std::stop_token stop) {
  const auto node = world_.node_views.Get({.name = key});
  const auto node_cache = world_.node_cache_views.Get(key);
  const bool is_there = node != nullptr && !node->meta.deleting;
  const bool wanted = is_there && HasAgents(*node);
  const bool owned = node_cache != nullptr && !node_cache->node_uid.empty();
  if (node_cache != nullptr && (!wanted || (owned && node_cache->node_uid != node->meta.uid))) {
    CW_RETURN_IF_ERROR(Delete(*node_cache, stop));
    // Its disappearance comes back as a change and makes the new one.
    return kube::Outcome{};
  }
  if (wanted && !owned) {
    auto applied = means_.client.Do(
        kube::Apply(kube::kNodeCaches, render::NodeCacheBase(key, node->meta.uid), AsOperator()),
        stop);
    if (!applied.ok()) {
      return applied.status();
    }
  }
  return is_there ? Attend(node, stop) : kube::Outcome{};
}

absl::StatusOr<kube::Outcome> Nodes::Attend(const std::shared_ptr<const api::Node>& node,
                                            std::stop_token stop) {
  if (!plan::IsWarming(*node) && !means_.writes_condition && !node->warm.has_value()) {
    return kube::Outcome{};
  }
  const plan::NodeVerdict verdict = plan::JudgeNode(Look(node));
  kube::Outcome outcome{.requeue_after = verdict.look_again};
  if (!verdict.remove_taints_for.empty()) {
    CW_ASSIGN_OR_RETURN(const bool removed, RemoveTaints(*node, verdict.remove_taints_for, stop));
    if (!removed) {
      outcome.requeue_after = kNodeStaleRetry;
    }
  }
  if (verdict.condition != node->warm) {
    CW_RETURN_IF_ERROR(WriteCondition(*node, verdict.condition, stop));
  }
  return outcome;
}

plan::NodeLook Nodes::Look(const std::shared_ptr<const api::Node>& node) const {
  plan::NodeLook look{
      .now = means_.clock.Now(),
      .view = observe::ObserveNode(world_, means_.agent_namespace, node),
      .wants_condition = means_.writes_condition && HasAgents(*node),
  };
  const observe::Circumstances circumstances{.now = look.now,
                                             .settings = means_.settings,
                                             .rehearsal = {},
                                             .agent_namespace = means_.agent_namespace};
  if (plan::IsWarming(*node) || look.wants_condition) {
    for (const auto& warmup : world_.warmup_views.List()) {
      look.claims.push_back(
          plan::ClaimOf(observe::ObserveOnNode(world_, *warmup, circumstances, look.view)));
    }
  }
  return look;
}

absl::StatusOr<bool> Nodes::RemoveTaints(const api::Node& node, std::string_view why,
                                         std::stop_token stop) {
  const auto answer =
      means_.client.Do(kube::JsonPatch(kube::kNodes, {.name = node.meta.name},
                                       render::StartupTaintPatch(node), AsOperator()),
                       stop);
  // A failed "test": somebody else changed the taints, and our store does not know yet.
  if (absl::IsInvalidArgument(answer.status()) || absl::IsAborted(answer.status()) ||
      absl::IsNotFound(answer.status())) {
    return false;
  }
  if (!answer.ok()) {
    return Annotate(answer.status(), "startup taint of node " + node.meta.name);
  }
  means_.metrics.startup_taints.Add({std::string(why)});
  means_.log.Info("startup taint removed",
                  {{"node", node.meta.name},
                   {"reason", why},
                   {"ready_seconds",
                    std::chrono::duration<double>(means_.clock.Now() - node.ready_since).count()}});
  return true;
}

absl::Status Nodes::WriteCondition(const api::Node& node,
                                   const std::optional<api::NodeCondition>& condition,
                                   std::stop_token stop) {
  const kube::Object object = world_.nodes.store().Get({.name = node.meta.name});
  if (object == nullptr || kube::UidOf(*object) != node.meta.uid) {
    return absl::OkStatus();
  }
  kube::WriteOptions options = AsOperator();
  options.subresource = "status";
  const auto answer = means_.client.Do(
      kube::Apply(kube::kNodes, render::NodeConditionApply(*object, condition, means_.clock.Now()),
                  options),
      stop);
  return Annotate(answer.status(), "condition of node " + node.meta.name);
}

}  // namespace cachewarm::controllers
