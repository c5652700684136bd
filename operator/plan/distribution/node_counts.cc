// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/distribution/node_counts.h"

#include <fmt/format.h>

namespace cachewarm::plan {

namespace {

void DescribeWaiting(const Context& context, api::BundleStatus& bundle) {
  if (bundle.nodes_waiting > 0 && bundle.message.empty()) {
    bundle.message = fmt::format(
        "{} nodes wait for a fetch slot: at most {} nodes fetch at the same time (fetch.nodesMax)",
        bundle.nodes_waiting, context.in.settings.fetch_nodes_max);
  }
}

}  // namespace

void CountNodes(const Context& context, const Wanted& wanted, api::BundleStatus& bundle) {
  bundle.nodes_desired = 0;
  bundle.nodes_ready = 0;
  bundle.nodes_failed = 0;
  bundle.nodes_waiting = 0;
  bundle.message.clear();
  for (size_t i = 0; i < context.nodes.size(); ++i) {
    const NodeState& node = context.nodes[i];
    if (node.target < 0 || !node.ready) {
      continue;
    }
    if (!Contains(BundlesOn(context, wanted, i), bundle.digest)) {
      continue;
    }
    ++bundle.nodes_desired;
    if (wanted.slots.waiting.contains(i) && NeedsFetch(context, node, bundle.digest)) {
      ++bundle.nodes_waiting;
    }
    const api::NodeBundle* reported = ReportedBundle(node, bundle.digest);
    if (reported == nullptr) {
      continue;
    }
    bundle.nodes_ready += reported->state == api::BundleState::kActive ? 1 : 0;
    if (reported->state == api::BundleState::kFailed) {
      ++bundle.nodes_failed;
      if (bundle.message.empty()) {
        bundle.message = TruncateMessage(fmt::format("node {}: {}: {}", node.view->node->meta.name,
                                                     reported->reason, reported->message));
      }
    }
  }
  DescribeWaiting(context, bundle);
}

}  // namespace cachewarm::plan
