// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/distribution/fetch_slots.h"

#include <algorithm>
#include <cstdlib>

#include "lib/api/reasons.h"
#include "lib/base/digest.h"
#include "operator/plan/distribution/node_entries.h"

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

// Number of unbound pods by shape.
using Unbound = std::map<const PodShape*, size_t>;

Unbound CountUnboundPods(const PlanContext& context) {
  Unbound out;
  for (const PodView& pod : context.pods) {
    if (pod.injected && !pod.of_job && !pod.finished && pod.pod->node.empty()) {
      ++out[pod.shape != nullptr ? pod.shape.get() : &context.pod_template.shape];
    }
  }
  return out;
}

// Returns the nodes that unbound pods could use: warm ones first, then those that are fetching,
// then all other nodes.
std::vector<size_t> NodesForUnbound(const PlanContext& context) {
  struct RankedNode {
    int work = 0;
    std::string order;
    size_t node = 0;
  };
  std::vector<RankedNode> ranked;
  for (size_t i = 0; i < context.nodes.size(); ++i) {
    const NodeState& node = context.nodes[i];
    if (node.target >= 0 && node.possible && !IsFull(context, node)) {
      const bool warm = IsWarm(context, node, context.pod_template.factors);
      const int work = warm ? 0 : IsFetchingAny(*node.view, context.in.now) ? 1 : 2;
      ranked.push_back({.work = work, .order = QueueOrder(context, i), .node = i});
    }
  }
  std::sort(ranked.begin(), ranked.end(), [](const RankedNode& a, const RankedNode& b) {
    return std::pair(a.work, std::string_view(a.order)) <
           std::pair(b.work, std::string_view(b.order));
  });
  std::vector<size_t> out(ranked.size());
  std::transform(ranked.begin(), ranked.end(), out.begin(),
                 [](const RankedNode& place) { return place.node; });
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

std::vector<int> NeedsOf(const PlanContext& context) {
  std::vector<int> needs(context.nodes.size(), api::kFetchPriorityNone);
  const Unbound unbound = CountUnboundPods(context);
  const std::vector<size_t> nearest =
      unbound.empty() ? std::vector<size_t>() : NodesForUnbound(context);
  for (const auto& [shape, count] : unbound) {
    size_t remaining = count;
    for (const size_t node : nearest) {
      if (remaining == 0) {
        break;
      }
      if (Fits(context, node, *shape, Taints::kExceptStartup)) {
        needs[node] = api::kFetchPriorityHeld;
        --remaining;
      }
    }
  }
  for (const PodView& pod : context.pods) {
    if (pod.injected && !pod.finished && pod.node >= 0 && !HasStarted(pod)) {
      needs[static_cast<size_t>(pod.node)] = api::kFetchPriorityBound;
    }
  }
  return needs;
}

FetchSlots AssignFetchSlots(const PlanContext& context, const std::vector<size_t>& to_fetch) {
  FetchSlots out{.needs = NeedsOf(context)};
  const WallTime now = context.in.now;
  out.fetching = static_cast<size_t>(
      std::count_if(context.in.nodes.begin(), context.in.nodes.end(),
                    [&](const NodeView& view) { return IsFetchingAny(view, now); }));
  std::vector<std::pair<std::string, size_t>> queue;
  for (const size_t node : to_fetch) {
    if (IsLive(*context.nodes[node].view, now)) {
      queue.emplace_back(QueueOrder(context, node), node);
    }
  }
  std::sort(queue.begin(), queue.end(), [&](const auto& a, const auto& b) {
    return std::pair(-out.needs[a.second], std::string_view(a.first)) <
           std::pair(-out.needs[b.second], std::string_view(b.first));
  });
  const auto all = static_cast<size_t>(context.in.settings.fetch_nodes_max);
  const size_t unneeded = all - all / 4;
  size_t in_flight = out.fetching;
  for (const auto& [place, node] : queue) {
    const bool is_fetching = IsFetchingAny(*context.nodes[node].view, now);
    const size_t open = out.needs[node] > api::kFetchPriorityNone ? all : unneeded;
    if (is_fetching || in_flight < open) {
      out.granted.insert(node);
      in_flight += is_fetching ? 0U : 1U;
    } else {
      out.waiting.emplace(node, static_cast<int>(1 + out.waiting.size() / open));
    }
  }
  return out;
}

}  // namespace cachewarm::plan
