// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/nodes/readiness.h"

#include <algorithm>
#include <iterator>

#include "lib/api/accelerators.h"
#include "lib/api/reasons.h"
#include "operator/plan/bundles.h"
#include "operator/plan/distribution/desired_bundles.h"
#include "operator/plan/distribution/node_entries.h"

namespace cachewarm::plan {

namespace {

namespace reason = api::reason;

// True if the warmup is refused for a reason that does not depend on nodes, so that it needs
// nothing on any node.
bool IsOut(const api::CacheWarmup& warmup) {
  static constexpr std::string_view kReasons[] = {
      reason::kInvalidSpec,           reason::kWorkloadNotFound,
      reason::kUnsupportedWorkload,   reason::kNamespaceForbidsHostPath,
      reason::kContainerNotFound,     reason::kVolumeConflict,
      reason::kOverlapsAnotherWarmup, reason::kInjectionRejected};
  const api::Condition* ready = api::FindCondition(warmup.status.conditions, "Ready");
  return ready != nullptr && ready->status == "False" &&
         std::find(std::begin(kReasons), std::end(kReasons), ready->reason) != std::end(kReasons);
}

// True if the node lacks only devices, and they may still appear: a device plugin registers them
// some time after the node has joined. False once the agent has reported a machine without devices.
bool AwaitsDevices(const Context& context, const NodeView& view) {
  const PodShape& shape = context.pod_template.shape;
  const api::Node& node = *view.node;
  if (context.pod_template.pod_template == nullptr || node.os != "linux" || !Selects(shape, node) ||
      !Tolerates(shape, node, Taints::kPersistent)) {
    return false;
  }
  Resources others;
  std::copy_if(shape.requests.begin(), shape.requests.end(), std::inserter(others, others.end()),
               [](const auto& each) { return !api::IsAccelerator(each.first); });
  const bool has_facts = view.cache != nullptr && !view.cache->status.node.cpu_class.empty();
  return others.size() != shape.requests.size() && Covers(node.allocatable, others) &&
         (!has_facts || view.cache->status.node.devices > 0);
}

// Returns the agent's report about the bundle, or about one that it extends (ServingBundle).
const api::NodeBundle* FindReport(const Bundles& bundles, const NodeState& node,
                                  const Digest& digest) {
  const auto& published = bundles.published();
  const auto found = std::find_if(published.begin(), published.end(),
                                  [&](const auto& each) { return each.digest == digest; });
  return found == published.end() ? ReportedBundle(node, digest) : ServingBundle(node, *found);
}

ReadinessState EvaluateBundles(const Context& context, const NodeState& node) {
  const Bundles bundles(context);
  for (const api::WantedBundle& wanted :
       WantedBundles(context, bundles, static_cast<size_t>(node.target))) {
    const api::NodeBundle* reported = FindReport(bundles, node, wanted.digest);
    if (reported != nullptr && reported->state == api::BundleState::kFailed &&
        reported->reason != reason::kFetchFailed) {
      return ReadinessState::kFailed;
    }
    if (reported == nullptr || reported->state != api::BundleState::kActive) {
      return ReadinessState::kWarming;
    }
  }
  return ReadinessState::kWarm;
}

}  // namespace

ReadinessState EvaluateReadiness(const Snapshot& snapshot) {
  const Observed observed = Observe(snapshot);
  const Context context(snapshot, observed);
  if (context.deleting() || context.paused() || IsOut(snapshot.warmup) || snapshot.nodes.empty()) {
    return ReadinessState::kNone;
  }
  if (context.nodes.empty() || !context.nodes.front().possible) {
    return AwaitsDevices(context, snapshot.nodes.front()) ? ReadinessState::kWarming
                                                          : ReadinessState::kNone;
  }
  const NodeState& node = context.nodes.front();
  if (IsFull(context, node)) {
    return ReadinessState::kFailed;
  }
  if (!node.prepared || !node.hidden_device.empty()) {
    return ReadinessState::kWarming;
  }
  return node.target < 0 ? ReadinessState::kWarm : EvaluateBundles(context, node);
}

}  // namespace cachewarm::plan
