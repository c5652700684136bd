// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/distribution/fetch_slots.h"

#include <algorithm>
#include <tuple>

#include "lib/api/reasons.h"
#include "lib/base/digest.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

constexpr Duration kReportFreshMax = std::chrono::seconds(30);
constexpr Duration kSlotDurationMin = std::chrono::minutes(2);
constexpr int64_t kFetchRateMin = int64_t{1} << 20;  // bytes per second

// True if the node needs no slot for the bundle any more, because the bundle is active or has
// failed permanently. A node whose fetch failed on a store error keeps its slot until the slot
// expires, so that all nodes do not retry at once when the store recovers.
bool IsSettled(const api::NodeWarmup* reported, const Digest& digest) {
  if (reported == nullptr) {
    return false;
  }
  const auto& bundles = reported->bundles;
  return std::any_of(bundles.begin(), bundles.end(), [&](const api::NodeBundle& each) {
    return each.digest == digest &&
           (each.state == api::BundleState::kActive ||
            (each.state == api::BundleState::kFailed && each.reason != reason::kFetchFailed));
  });
}

bool IsFetchingAny(const NodeView& view, WallTime now) {
  if (view.cache == nullptr) {
    return false;
  }
  const auto& warmups = view.cache->spec.warmups;
  return std::any_of(warmups.begin(), warmups.end(), [&](const api::WantedWarmup& wanted) {
    return IsFetching(view, wanted, now);
  });
}

std::string QueueOrder(const PlanContext& context, size_t node) {
  return DigestOf(context.uid() + "/" + context.nodes[node].view->node->meta.name).hex();
}

std::set<size_t> NodesWithBoundPods(const PlanContext& context) {
  std::set<size_t> out;
  for (const PodView& pod : context.pods) {
    if (pod.injected && !pod.finished && pod.node >= 0 && !HasStarted(pod)) {
      out.insert(static_cast<size_t>(pod.node));
    }
  }
  return out;
}

}  // namespace

bool IsLive(const NodeView& view, WallTime now) {
  if (view.agent_ready || view.cache == nullptr) {
    return view.agent_ready;
  }
  const WallTime reported_at = view.cache->status.heartbeat;
  return (reported_at < now ? now - reported_at : reported_at - now) < kReportFreshMax;
}

bool IsFetching(const NodeView& view, const api::WantedWarmup& wanted, WallTime now) {
  const api::NodeWarmup* reported = nullptr;
  for (const api::NodeWarmup& each : view.cache->status.warmups) {
    reported = each.uid == wanted.uid ? &each : reported;
  }
  int64_t bytes = 0;
  bool open = false;
  for (const api::WantedBundle& bundle : wanted.bundles) {
    if (!IsSettled(reported, bundle.digest)) {
      open = true;
      bytes += bundle.bytes;
    }
  }
  const Duration allowed = kSlotDurationMin + std::chrono::seconds(bytes / kFetchRateMin);
  return open && IsLive(view, now) && now < wanted.fetch_granted_time + allowed;
}

FetchSlots AssignFetchSlots(const PlanContext& context, const std::vector<size_t>& to_fetch) {
  FetchSlots out{.bound = NodesWithBoundPods(context)};
  const WallTime now = context.in.now;
  std::vector<std::tuple<bool, std::string, size_t>> queue;
  for (const size_t node : to_fetch) {
    if (IsLive(*context.nodes[node].view, now)) {
      queue.emplace_back(!out.bound.contains(node), QueueOrder(context, node), node);
    }
  }
  if (queue.empty()) {
    return out;
  }
  std::sort(queue.begin(), queue.end());
  const auto slots = static_cast<size_t>(context.in.settings.fetch_nodes_max);
  auto in_flight = static_cast<size_t>(
      std::count_if(context.in.nodes.begin(), context.in.nodes.end(),
                    [&](const NodeView& view) { return IsFetchingAny(view, now); }));
  for (const auto& [later, order, node] : queue) {
    const bool is_fetching = IsFetchingAny(*context.nodes[node].view, now);
    if (is_fetching || in_flight < slots) {
      out.granted.insert(node);
      in_flight += is_fetching ? 0U : 1U;
    } else {
      out.waiting.emplace(node, static_cast<int>(1 + out.waiting.size() / slots));
    }
  }
  return out;
}

}  // namespace cachewarm::plan
