// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/nodes/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "lib/api/reasons.h"
#include "operator/plan/decisions.h"
#include "operator/plan/fetching/entries.h"
#include "operator/plan/fetching/wanted.h"

namespace cachewarm::plan {

namespace {

namespace reason = api::reason;

// Refused for a reason that no node can change: nothing of it comes to any node.
bool IsOut(const api::CacheWarmup& warmup) {
  static constexpr std::string_view kReasons[] = {
      reason::kInvalidSpec,      reason::kWorkloadNotFound,  reason::kUnsupportedWorkload,
      reason::kNamespaceForbids, reason::kContainerNotFound, reason::kVolumeConflict,
      reason::kOverlap,          reason::kInjectionRefused};
  const api::Condition* ready = api::FindCondition(warmup.status.conditions, "Ready");
  return ready != nullptr && ready->status == "False" &&
         std::find(std::begin(kReasons), std::end(kReasons), ready->reason) != std::end(kReasons);
}

// A device plugin registers after the node has joined: until then the node looks as if no pod that
// asks for a device could land there.
bool AwaitsDevices(const Round& round, const NodeView& view) {
  const PodShape& shape = round.pod_template.shape;
  const api::Node& node = *view.node;
  if (round.pod_template.pod_template == nullptr || node.os != "linux" || !Selects(shape, node) ||
      !Tolerates(shape, node, Taints::kLasting)) {
    return false;
  }
  Resources others;
  std::copy_if(shape.requests.begin(), shape.requests.end(), std::inserter(others, others.end()),
               [](const auto& each) { return !IsAccelerator(each.first); });
  const bool has_facts = view.cache != nullptr && !view.cache->status.node.cpu_class.empty();
  return others.size() != shape.requests.size() && Holds(node.allocatable, others) &&
         (!has_facts || view.cache->status.node.devices > 0);
}

NodeClaim ClaimOfBundles(const Round& round, const NodeState& node) {
  for (const api::WantedBundle& wanted : WantedBundles(round, static_cast<size_t>(node.target))) {
    const api::NodeBundle* reported = ReportedBundle(node, wanted.digest);
    const std::string of = fmt::format("bundle {} of {}/{}", wanted.digest.Short(),
                                       round.in.warmup.ns, round.in.warmup.name);
    if (reported != nullptr && reported->state == api::BundleState::kFailed &&
        reported->reason != reason::kFetchFailed) {
      return {.claim = Claim::kFailed, .message = fmt::format("{}: {}", of, reported->reason)};
    }
    if (reported == nullptr || reported->state != api::BundleState::kActive) {
      return {.claim = Claim::kWaits, .message = fmt::format("{} is not active yet", of)};
    }
  }
  return {.claim = Claim::kWarm};
}

}  // namespace

NodeClaim ClaimOf(const Snapshot& snapshot) {
  Round round(snapshot);
  round.out.status = snapshot.warmup.status;
  ReadWorkload(round);
  FindTargets(round);
  if (round.deleting() || round.paused() || IsOut(snapshot.warmup) || snapshot.nodes.empty()) {
    return {};
  }
  const std::string name = fmt::format("{}/{}", snapshot.warmup.ns, snapshot.warmup.name);
  if (round.nodes.empty() || !round.nodes.front().possible) {
    return AwaitsDevices(round, snapshot.nodes.front())
               ? NodeClaim{.claim = Claim::kWaits,
                           .message = fmt::format("the node offers no devices for {} yet", name)}
               : NodeClaim{};
  }
  const NodeState& node = round.nodes.front();
  if (IsFull(round, node)) {
    return {.claim = Claim::kFailed, .message = node.problem};
  }
  if (!node.prepared) {
    return {.claim = Claim::kWaits,
            .message = fmt::format("the directory of {} is not prepared yet", name)};
  }
  return node.target < 0 ? NodeClaim{.claim = Claim::kWarm} : ClaimOfBundles(round, node);
}

}  // namespace cachewarm::plan
