// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "operator/plan/decisions.h"
#include "operator/plan/fetching/counts.h"
#include "operator/plan/fetching/entries.h"
#include "operator/plan/fetching/turns.h"
#include "operator/plan/fetching/wanted.h"

namespace cachewarm::plan {

namespace {

constexpr size_t kBundlesMax = 64;
constexpr size_t kBuildersMax = 64;
constexpr size_t kRunAsMax = 8;
// While nodes wait for their turn: turns of other warmups end without a word to this one.
constexpr Duration kLookForTurn = std::chrono::seconds(5);
constexpr Duration kLookForRoom = std::chrono::seconds(60);

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

std::vector<size_t> FindAsking(const Round& round, const Wanted& wanted) {
  std::vector<size_t> out;
  for (size_t i = 0; i < round.nodes.size(); ++i) {
    const NodeState& node = round.nodes[i];
    if (node.cache == nullptr || node.target < 0 || IsFull(round, node)) {
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
  for (const auto& [node, before] : wanted.turns.waiting) {
    round.nodes[node].turns_before = before;
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
    if (node.possible && IsFull(round, node)) {
      WakeAt(round, round.in.now + kLookForRoom);  // nobody tells us that another has left
    }
    if (std::optional<api::NodeCacheSpec> changed = ChangedEntries(round, wanted, i)) {
      round.out.nodes.push_back({.node = node.view->node->meta.name,
                                 .node_uid = node.view->node->meta.uid,
                                 .spec = std::move(*changed)});
    }
  }
  if (round.deleting()) {
    return;
  }
  for (api::BundleStatus& bundle : round.out.status.bundles) {
    CountNodes(round, wanted, bundle);
  }
  Prune(round);
}

}  // namespace cachewarm::plan
