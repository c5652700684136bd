// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/fetching/turns.h"

#include <algorithm>
#include <cstdlib>

#include "lib/api/reasons.h"
#include "lib/base/digest.h"
#include "operator/plan/fetching/entries.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

constexpr Duration kFirstReport = std::chrono::seconds(30);
constexpr Duration kTurnLeast = std::chrono::minutes(2);
constexpr int64_t kBytesPerSecondLeast = int64_t{1} << 20;

// One that the store has failed tries again by itself, and all of them at once when the store is
// back: it keeps its turn, for as long as a turn lasts.
bool HasAnswered(const api::NodeWarmup* reported, const Digest& digest) {
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

bool IsBusy(const NodeView& view, WallTime now) {
  if (view.cache == nullptr) {
    return false;
  }
  const auto& warmups = view.cache->spec.warmups;
  return std::any_of(warmups.begin(), warmups.end(), [&](const api::WantedWarmup& wanted) {
    return IsFetching(view, wanted, now);
  });
}

std::string PlaceInQueue(const Round& round, size_t node) {
  return DigestOf(round.uid() + "/" + round.nodes[node].view->node->meta.name).hex();
}

// Pods of one shape that no node has yet.
using Unbound = std::map<const PodShape*, size_t>;

Unbound CountUnboundPods(const Round& round) {
  Unbound out;
  for (const PodView& pod : round.pods) {
    if (pod.ours && !pod.of_job && !pod.finished && pod.pod->node.empty()) {
      ++out[pod.shape != nullptr ? pod.shape.get() : &round.pod_template.shape];
    }
  }
  return out;
}

// The order in which nodes are thought of for unbound pods: least new work first.
std::vector<size_t> Nearest(const Round& round) {
  struct Place {
    int work = 0;
    std::string order;
    size_t node = 0;
  };
  std::vector<Place> places;
  for (size_t i = 0; i < round.nodes.size(); ++i) {
    const NodeState& node = round.nodes[i];
    if (node.target >= 0 && node.possible && !IsFull(round, node)) {
      const bool warm = IsWarm(round, node, round.pod_template.factors);
      const int work = warm ? 0 : IsBusy(*node.view, round.in.now) ? 1 : 2;
      places.push_back({.work = work, .order = PlaceInQueue(round, i), .node = i});
    }
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::pair(a.work, std::string_view(a.order)) <
           std::pair(b.work, std::string_view(b.order));
  });
  std::vector<size_t> out(places.size());
  std::transform(places.begin(), places.end(), out.begin(),
                 [](const Place& place) { return place.node; });
  return out;
}

}  // namespace

bool IsLive(const NodeView& view, WallTime now) {
  if (view.agent_ready || view.cache == nullptr) {
    return view.agent_ready;
  }
  const WallTime heard = view.cache->status.heartbeat;
  return (heard < now ? now - heard : heard - now) < kFirstReport;
}

bool IsFetching(const NodeView& view, const api::WantedWarmup& wanted, WallTime now) {
  const api::NodeWarmup* reported = nullptr;
  for (const api::NodeWarmup& each : view.cache->status.warmups) {
    reported = each.uid == wanted.uid ? &each : reported;
  }
  int64_t bytes = 0;
  bool open = false;
  for (const api::WantedBundle& bundle : wanted.bundles) {
    if (!HasAnswered(reported, bundle.digest)) {
      open = true;
      bytes += bundle.bytes;
    }
  }
  const Duration allowed = kTurnLeast + std::chrono::seconds(bytes / kBytesPerSecondLeast);
  return open && IsLive(view, now) && now < wanted.fetch_since + allowed;
}

std::vector<int> NeedsOf(const Round& round) {
  std::vector<int> needs(round.nodes.size(), api::kNeedNone);
  const Unbound unbound = CountUnboundPods(round);
  const std::vector<size_t> nearest = unbound.empty() ? std::vector<size_t>() : Nearest(round);
  for (const auto& [shape, count] : unbound) {
    size_t seats = count;
    for (const size_t node : nearest) {
      if (seats == 0) {
        break;
      }
      if (CanTake(round, node, *shape, Taints::kOthers)) {
        needs[node] = api::kNeedHeld;
        --seats;
      }
    }
  }
  for (const PodView& pod : round.pods) {
    if (pod.ours && !pod.finished && pod.node >= 0 && !HasStarted(pod)) {
      needs[static_cast<size_t>(pod.node)] = api::kNeedBound;
    }
  }
  return needs;
}

Turns ShareTurns(const Round& round, const std::vector<size_t>& asking) {
  Turns out{.needs = NeedsOf(round)};
  const WallTime now = round.in.now;
  out.fetching =
      static_cast<size_t>(std::count_if(round.in.nodes.begin(), round.in.nodes.end(),
                                        [&](const NodeView& view) { return IsBusy(view, now); }));
  std::vector<std::pair<std::string, size_t>> queue;
  for (const size_t node : asking) {
    if (IsLive(*round.nodes[node].view, now)) {
      queue.emplace_back(PlaceInQueue(round, node), node);
    }
  }
  std::sort(queue.begin(), queue.end(), [&](const auto& a, const auto& b) {
    return std::pair(-out.needs[a.second], std::string_view(a.first)) <
           std::pair(-out.needs[b.second], std::string_view(b.first));
  });
  const auto all = static_cast<size_t>(round.in.settings.fetch_nodes_max);
  const size_t unneeded = all - all / 4;
  size_t busy = out.fetching;
  for (const auto& [place, node] : queue) {
    const bool is_busy = IsBusy(*round.nodes[node].view, now);
    const size_t open = out.needs[node] > api::kNeedNone ? all : unneeded;
    if (is_busy || busy < open) {
      out.granted.insert(node);
      busy += is_busy ? 0U : 1U;
    } else {
      out.waiting.emplace(node, static_cast<int>(1 + out.waiting.size() / open));
    }
  }
  return out;
}

}  // namespace cachewarm::plan
