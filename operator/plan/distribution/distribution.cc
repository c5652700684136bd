// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "operator/plan/decisions.h"
#include "operator/plan/distribution/desired_bundles.h"
#include "operator/plan/distribution/fetch_slots.h"
#include "operator/plan/distribution/node_counts.h"
#include "operator/plan/distribution/node_entries.h"

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
std::vector<std::string> RunAsNames(const Context& context) {
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

std::vector<size_t> FindNodesToFetch(const Context& context, const Wanted& wanted) {
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

// Limits the published bundles to the number that the schema allows, and sorts them. Bundles that
// no node should have are removed first, the oldest first.
std::vector<api::BundleStatus> PruneBundles(std::vector<api::BundleStatus> bundles) {
  while (bundles.size() > kBundlesMax) {
    bundles.erase(
        std::min_element(bundles.begin(), bundles.end(), [](const auto& a, const auto& b) {
          return std::pair(a.nodes_desired > 0, a.published_time) <
                 std::pair(b.nodes_desired > 0, b.published_time);
        }));
  }
  std::sort(bundles.begin(), bundles.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  return bundles;
}

// Does the same for the builds. Builds that have ended are removed first, the oldest first.
std::vector<api::BuilderStatus> PruneBuilders(std::vector<api::BuilderStatus> builders) {
  while (builders.size() > kBuildersMax) {
    builders.erase(
        std::min_element(builders.begin(), builders.end(), [](const auto& a, const auto& b) {
          return std::pair(IsRunning(a), a.elected_time) < std::pair(IsRunning(b), b.elected_time);
        }));
  }
  std::sort(builders.begin(), builders.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  return builders;
}

bool IsFrozen(const PlanContext& context) {
  return context.deleting() || context.paused() || context.acceptance.hard;
}

FetchSlots DecideSlots(const PlanContext& context, const Wanted& wanted) {
  return AssignFetchSlots(
      context, IsFrozen(context) ? std::vector<size_t>() : FindNodesToFetch(context, wanted));
}

// Gives a bundle that is being proven to the node of its builder, and to no other node.
void AddBundlesToProve(const PlanContext& context, Wanted& wanted) {
  for (const api::BuilderStatus& builder : context.builds.builders) {
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

Distribution DecideDistribution(const PlanContext& context, const CountedStarts& starts) {
  const Bundles& bundles = context.builds.bundles;
  Wanted wanted{.bundles = bundles,
                .windows = starts.windows,
                .starts = starts.starts,
                .run_as = RunAsNames(context)};
  for (size_t target = 0; target < context.targets.size(); ++target) {
    wanted.by_target.push_back(WantedBundles(context, bundles, target));
  }
  AddBundlesToProve(context, wanted);
  wanted.slots = DecideSlots(context, wanted);
  Distribution out{.bundles = bundles, .builders = context.builds.builders};
  out.slots_before = wanted.slots.waiting;
  if (!out.slots_before.empty()) {
    out.effects.RequeueAt(context.in.now + kSlotRecheck);
  }
  for (size_t i = 0; i < context.nodes.size(); ++i) {
    const NodeState& node = context.nodes[i];
    if (node.cache == nullptr) {
      // Skip: an apply here would create the NodeCache without an owner reference.
      // operator/controllers/nodes.cc creates it with one.
      continue;
    }
    if (node.possible && IsFull(context, node)) {
      // Poll: no event reports that another warmup has stopped using the node.
      out.effects.RequeueAt(context.in.now + kFullNodeRecheck);
    }
    if (std::optional<api::NodeCacheSpec> changed = ChangedEntries(context, wanted, i)) {
      out.entries.push_back({.node = node.view->node->meta.name,
                             .node_uid = node.view->node->meta.uid,
                             .spec = std::move(*changed)});
    }
  }
  if (context.deleting()) {
    return out;
  }
  std::vector<api::BundleStatus> counted = bundles.published();
  for (api::BundleStatus& bundle : counted) {
    CountNodes(context, wanted, bundle);
  }
  out.bundles.Replace(PruneBundles(std::move(counted)));
  out.builders = PruneBuilders(std::move(out.builders));
  return out;
}

}  // namespace cachewarm::plan
