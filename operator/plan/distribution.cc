// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "operator/plan/decisions.h"
#include "operator/plan/fetching/counts.h"
#include "operator/plan/fetching/entries.h"
#include "operator/plan/fetching/fetch_slots.h"
#include "operator/plan/fetching/wanted.h"

namespace cachewarm::plan {

namespace {

constexpr size_t kBundlesMax = 64;
constexpr size_t kBuildersMax = 64;
constexpr size_t kRunAsMax = 8;
// Poll while nodes wait for a fetch slot: no event reports that another warmup has freed a slot.
constexpr Duration kSlotRecheck = std::chrono::seconds(5);
constexpr Duration kFullNodeRecheck = std::chrono::seconds(60);

// Returns the names (run_as) of the directories that nodes must prepare: first that of the
// template, then those that other pods still use.
std::vector<std::string> RunAsNames(const PlanContext& context) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && out.size() < kRunAsMax &&
        std::find(out.begin(), out.end(), name) == out.end()) {
      out.push_back(name);
    }
  };
  add(context.pod_template.run_as);
  std::set<std::string> live;
  for (const PodView& pod : context.pods) {
    if (pod.injected && !pod.finished) {
      live.insert(pod.run_as);
    }
  }
  std::for_each(live.begin(), live.end(), add);
  return out;
}

std::vector<size_t> FindNodesToFetch(const PlanContext& context, const Wanted& wanted) {
  std::vector<size_t> out;
  for (size_t i = 0; i < context.nodes.size(); ++i) {
    const NodeState& node = context.nodes[i];
    if (node.cache == nullptr || node.target < 0 || IsFull(context, node)) {
      continue;
    }
    const auto& here = BundlesOn(context, wanted, i);
    if (std::any_of(here.begin(), here.end(), [&](const api::WantedBundle& each) {
          return NeedsFetch(context, node, each.digest);
        })) {
      out.push_back(i);
    }
  }
  return out;
}

// Limits status.bundles and status.builders to the lengths that the schema allows. Bundles that no
// node should have, and builds that have ended, are removed first; in each case the oldest come
// first.
void Prune(PlanContext& context) {
  auto& bundles = context.out.status.bundles;
  while (bundles.size() > kBundlesMax) {
    const auto oldest =
        std::min_element(bundles.begin(), bundles.end(), [](const auto& a, const auto& b) {
          return std::pair(a.nodes_desired > 0, a.published_time) <
                 std::pair(b.nodes_desired > 0, b.published_time);
        });
    bundles.erase(oldest);
    context.serving.clear();
  }
  auto& builders = context.out.status.builders;
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
  context.serving.clear();
}

bool IsFrozen(const PlanContext& context) {
  return context.deleting() || context.paused() || context.acceptance.hard;
}

void AssignSlots(PlanContext& context, Wanted& wanted) {
  const std::vector<size_t> to_fetch =
      IsFrozen(context) ? std::vector<size_t>() : FindNodesToFetch(context, wanted);
  wanted.slots = AssignFetchSlots(context, to_fetch);
  for (const auto& [node, before] : wanted.slots.waiting) {
    context.nodes[node].slots_before = before;
    RequeueAt(context, context.in.now + kSlotRecheck);
  }
}

// Gives a bundle that is being proven to the node of its builder, and to no other node.
void AddBundlesToProve(const PlanContext& context, Wanted& wanted) {
  for (const api::BuilderStatus& builder : context.out.status.builders) {
    if (!builder.proof || !builder.captured) {
      continue;
    }
    for (size_t i = 0; i < context.nodes.size(); ++i) {
      const NodeState& node = context.nodes[i];
      if (node.view->node->meta.name == builder.node && node.target >= 0) {
        const auto entry =
            wanted.by_node.emplace(i, wanted.by_target[static_cast<size_t>(node.target)]).first;
        AddBundleToProve(builder, entry->second);
      }
    }
  }
}

}  // namespace

void DecideDistribution(PlanContext& context) {
  Wanted wanted{.run_as = RunAsNames(context)};
  for (size_t target = 0; target < context.targets.size(); ++target) {
    wanted.by_target.push_back(WantedBundles(context, target));
  }
  AddBundlesToProve(context, wanted);
  AssignSlots(context, wanted);
  for (size_t i = 0; i < context.nodes.size(); ++i) {
    const NodeState& node = context.nodes[i];
    if (node.cache == nullptr) {
      // Skip: an apply here would create the NodeCache without an owner reference.
      // operator/controllers/nodes.cc creates it with one.
      continue;
    }
    if (node.possible && IsFull(context, node)) {
      // Poll: no event reports that another warmup has stopped using the node.
      RequeueAt(context, context.in.now + kFullNodeRecheck);
    }
    if (std::optional<api::NodeCacheSpec> changed = ChangedEntries(context, wanted, i)) {
      context.out.nodes.push_back({.node = node.view->node->meta.name,
                                   .node_uid = node.view->node->meta.uid,
                                   .spec = std::move(*changed)});
    }
  }
  if (context.deleting()) {
    return;
  }
  for (api::BundleStatus& bundle : context.out.status.bundles) {
    CountNodes(context, wanted, bundle);
  }
  Prune(context);
}

}  // namespace cachewarm::plan
