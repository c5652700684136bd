// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "operator/plan/decisions.h"
#include "operator/plan/fetching/turns.h"
#include "operator/plan/fetching/wanted.h"

namespace cachewarm::plan {

namespace {

constexpr size_t kBundlesMax = 64;
constexpr size_t kBuildersMax = 64;
constexpr size_t kRunAsMax = 8;
constexpr size_t kCapturesMax = 16;
constexpr size_t kStartsMax = 64;
// While nodes wait for their turn: turns of other warmups end without a word to this one.
constexpr Duration kLookForTurn = std::chrono::seconds(5);

// The template's run-as first, then those of pods that still run as another.
std::vector<std::string> RunAsNames(const Round& round) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && out.size() < kRunAsMax &&
        std::find(out.begin(), out.end(), name) == out.end()) {
      out.push_back(name);
    }
  };
  add(round.pod_template.run_as);
  std::set<std::string> live;
  for (const PodView& pod : round.pods) {
    if (pod.ours && !pod.finished) {
      live.insert(pod.run_as);
    }
  }
  std::for_each(live.begin(), live.end(), add);
  return out;
}

// ---- the entries of one node --------------------------------------------------------------------

template <typename Entry>
std::vector<Entry> OursOf(const std::vector<Entry>& entries, const std::string& uid) {
  std::vector<Entry> out;
  for (const Entry& entry : entries) {
    if constexpr (requires { entry.warmup_uid; }) {
      if (entry.warmup_uid == uid) {
        out.push_back(entry);
      }
    } else if (entry.uid == uid) {
      out.push_back(entry);
    }
  }
  return out;
}

api::NodeCacheSpec Present(const NodeState& node, const std::string& uid) {
  return {.warmups = OursOf(node.cache->spec.warmups, uid),
          .captures = OursOf(node.cache->spec.captures, uid),
          .starts = OursOf(node.cache->spec.starts, uid)};
}

struct Wanted {
  std::vector<std::vector<api::WantedBundle>> by_target;
  std::vector<std::string> run_as;
  Turns turns;
};

bool Names(const std::vector<api::WantedBundle>& bundles, const Digest& digest) {
  return std::any_of(bundles.begin(), bundles.end(),
                     [&](const api::WantedBundle& each) { return each.digest == digest; });
}

const api::WantedWarmup* PresentEntry(const Round& round, const NodeState& node) {
  if (node.cache != nullptr) {
    for (const api::WantedWarmup& entry : node.cache->spec.warmups) {
      if (entry.uid == round.uid()) {
        return &entry;
      }
    }
  }
  return nullptr;
}

// The node would have to fetch `digest`, and was not told to yet.
bool Asks(const Round& round, const NodeState& node, const Digest& digest) {
  const api::WantedWarmup* present = PresentEntry(round, node);
  const bool told = present != nullptr && Names(present->bundles, digest);
  return !told && !IsActive(node, digest);
}

std::vector<size_t> FindAsking(const Round& round, const Wanted& wanted) {
  std::vector<size_t> out;
  for (size_t i = 0; i < round.nodes.size(); ++i) {
    const NodeState& node = round.nodes[i];
    if (node.cache == nullptr || node.target < 0) {
      continue;
    }
    const auto& here = wanted.by_target[static_cast<size_t>(node.target)];
    if (std::any_of(here.begin(), here.end(), [&](const api::WantedBundle& each) {
          return Asks(round, node, each.digest);
        })) {
      out.push_back(i);
    }
  }
  return out;
}

// Until its turn comes, a node keeps what it has: to take one bundle away makes another tree, too.
void SetBundles(const Round& round, const Wanted& wanted, size_t index, api::WantedWarmup& entry) {
  const NodeState& node = round.nodes[index];
  const api::WantedWarmup* present = PresentEntry(round, node);
  if (present != nullptr) {
    entry.need = present->need;
    entry.fetch_since = present->fetch_since;
  }
  const int need = wanted.turns.needs.empty() ? api::kNeedNone : wanted.turns.needs[index];
  if (present != nullptr && need > entry.need && IsFetching(*node.view, *present, round.in.now)) {
    entry.need = need;
  }
  const auto& here = wanted.by_target[static_cast<size_t>(node.target)];
  const bool asks = std::any_of(here.begin(), here.end(), [&](const api::WantedBundle& each) {
    return Asks(round, node, each.digest);
  });
  if (!asks) {
    entry.bundles = here;
  } else if (wanted.turns.granted.contains(index)) {
    entry.bundles = here;
    entry.need = need;
    entry.fetch_since = round.stamp();
  } else if (present != nullptr) {
    entry.bundles = present->bundles;
  }
}

template <typename Entry>
std::vector<Entry> SortedEntries(const std::map<size_t, std::vector<Entry>>& all, size_t node) {
  const auto found = all.find(node);
  std::vector<Entry> out = found == all.end() ? std::vector<Entry>() : found->second;
  std::sort(out.begin(), out.end(),
            [](const Entry& a, const Entry& b) { return a.pod_uid < b.pod_uid; });
  return out;
}

// All warmups share the lists of one node, and an apply beyond the schema's limit is refused whole.
template <typename Entry>
void LeaveRoom(std::vector<Entry>& ours, const std::vector<Entry>& all, size_t limit,
               const std::string& uid) {
  const auto others = static_cast<size_t>(std::count_if(
      all.begin(), all.end(), [&](const Entry& entry) { return entry.warmup_uid != uid; }));
  ours.resize(std::min(ours.size(), limit - std::min(limit, others)));
}

void LeaveRoomForOthers(const Round& round, const NodeState& node, api::NodeCacheSpec& spec) {
  LeaveRoom(spec.captures, node.cache->spec.captures, kCapturesMax, round.uid());
  LeaveRoom(spec.starts, node.cache->spec.starts, kStartsMax, round.uid());
}

api::NodeCacheSpec Desired(const Round& round, const Wanted& wanted, size_t index) {
  const NodeState& node = round.nodes[index];
  const api::NodeCacheSpec present = Present(node, round.uid());
  api::NodeCacheSpec out;
  out.starts = SortedEntries(round.windows, index);
  // Frozen: what is there stays as it is.
  if (round.paused() || (round.acceptance.hard && !present.warmups.empty())) {
    out.warmups = present.warmups;
    out.captures = present.captures;
    if (!round.paused()) {
      out.captures = SortedEntries(round.captures, index);
    }
    return out;
  }
  if (round.acceptance.hard || !(node.possible || node.hosts)) {
    return {};
  }
  api::WantedWarmup entry{.uid = round.uid(),
                          .ns = round.in.warmup.ns,
                          .name = round.in.warmup.name,
                          .run_as = wanted.run_as,
                          .caches = round.in.warmup.spec.caches};
  if (!present.warmups.empty()) {
    entry.renew = present.warmups.front().renew;
    entry.renewed_for = present.warmups.front().renewed_for;
  }
  RenewTree(round, index, entry);
  if (node.target >= 0) {
    SetBundles(round, wanted, index, entry);
  }
  out.warmups.push_back(std::move(entry));
  out.captures = SortedEntries(round.captures, index);
  return out;
}

bool Differs(const api::NodeCacheSpec& a, const api::NodeCacheSpec& b) {
  return !(a.warmups == b.warmups && a.captures == b.captures && a.starts == b.starts);
}

bool IsEmpty(const api::NodeCacheSpec& spec) {
  return spec.warmups.empty() && spec.captures.empty() && spec.starts.empty();
}

// ---- counts -------------------------------------------------------------------------------------

// Every digest that counts as spread to a node is found in one of its fitting targets' lists.
void CountNodes(const Round& round, const Wanted& wanted, api::BundleStatus& bundle) {
  bundle.nodes_desired = 0;
  bundle.nodes_ready = 0;
  bundle.nodes_failed = 0;
  bundle.nodes_waiting = 0;
  bundle.message.clear();
  for (size_t i = 0; i < round.nodes.size(); ++i) {
    const NodeState& node = round.nodes[i];
    if (node.target < 0 || !node.ready) {
      continue;
    }
    const auto& here = wanted.by_target[static_cast<size_t>(node.target)];
    if (!Names(here, bundle.digest)) {
      continue;
    }
    ++bundle.nodes_desired;
    if (wanted.turns.waiting.contains(i) && Asks(round, node, bundle.digest)) {
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
        bundle.message = CutMessage(fmt::format("node {}: {}: {}", node.view->node->meta.name,
                                                reported->reason, reported->message));
      }
    }
  }
}

void TellOfTurns(const Round& round, api::BundleStatus& bundle) {
  if (bundle.nodes_waiting > 0 && bundle.message.empty()) {
    bundle.message = fmt::format(
        "{} nodes wait for their turn: no more than {} fetch at the same time (fetch.nodesMax)",
        bundle.nodes_waiting, round.in.settings.fetch_nodes_max);
  }
}

// Beyond the limits of the schema the oldest that no node wants go first.
void Prune(Round& round) {
  auto& bundles = round.out.status.bundles;
  while (bundles.size() > kBundlesMax) {
    const auto oldest =
        std::min_element(bundles.begin(), bundles.end(), [](const auto& a, const auto& b) {
          return std::pair(a.nodes_desired > 0, a.published_time) <
                 std::pair(b.nodes_desired > 0, b.published_time);
        });
    bundles.erase(oldest);
    round.serving.clear();
  }
  auto& builders = round.out.status.builders;
  while (builders.size() > kBuildersMax) {
    builders.erase(
        std::min_element(builders.begin(), builders.end(), [](const auto& a, const auto& b) {
          return std::pair(IsRunning(a), a.elected_time) < std::pair(IsRunning(b), b.elected_time);
        }));
  }
  std::sort(bundles.begin(), bundles.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  std::sort(builders.begin(), builders.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  round.serving.clear();
}

bool IsFrozen(const Round& round) {
  return round.deleting() || round.paused() || round.acceptance.hard;
}

void TakeTurns(Round& round, Wanted& wanted) {
  const std::vector<size_t> asking =
      IsFrozen(round) ? std::vector<size_t>() : FindAsking(round, wanted);
  if (!asking.empty()) {
    wanted.turns = ShareTurns(round, asking);
  } else if (std::any_of(round.nodes.begin(), round.nodes.end(), [&](const NodeState& node) {
               const api::WantedWarmup* present = PresentEntry(round, node);
               return present != nullptr && IsFetching(*node.view, *present, round.in.now);
             })) {
    wanted.turns.needs = NeedsOf(round);
  }
  if (!wanted.turns.waiting.empty()) {
    WakeAt(round, round.in.now + kLookForTurn);
  }
}

}  // namespace

void DecideDistribution(Round& round) {
  Wanted wanted{.run_as = RunAsNames(round)};
  for (size_t target = 0; target < round.targets.size(); ++target) {
    wanted.by_target.push_back(WantedBundles(round, target));
  }
  TakeTurns(round, wanted);
  for (size_t i = 0; i < round.nodes.size(); ++i) {
    const NodeState& node = round.nodes[i];
    if (node.cache == nullptr) {
      continue;  // the operator makes it; an apply of ours would make one without its owner
    }
    const api::NodeCacheSpec present = Present(node, round.uid());
    api::NodeCacheSpec desired =
        round.deleting() ? api::NodeCacheSpec{} : Desired(round, wanted, i);
    LeaveRoomForOthers(round, node, desired);
    if (IsEmpty(desired) && IsEmpty(present)) {
      continue;
    }
    if (Differs(desired, present)) {
      round.out.nodes.push_back({.node = node.view->node->meta.name,
                                 .node_uid = node.view->node->meta.uid,
                                 .spec = std::move(desired)});
    }
  }
  if (round.deleting()) {
    return;
  }
  for (api::BundleStatus& bundle : round.out.status.bundles) {
    CountNodes(round, wanted, bundle);
    TellOfTurns(round, bundle);
  }
  Prune(round);
}

}  // namespace cachewarm::plan
