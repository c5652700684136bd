// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/captures/harvest_election.h"

#include <fmt/format.h>

#include <algorithm>

namespace cachewarm::plan {

namespace {

// The pods on a node that mount one directory of the warmup.
struct DirectoryPods {
  const PodView* oldest = nullptr;  // running, with the key
  bool is_starting = false;         // one of them is not Ready
  bool has_other_key = false;
};

DirectoryPods FindPodsOfDirectory(const Context& context, const LiveKey& key, size_t node,
                                  const std::string& run_as) {
  DirectoryPods out;
  for (const PodView& pod : context.pods) {
    if (!pod.injected || pod.node != static_cast<int>(node) || pod.run_as != run_as ||
        pod.finished || pod.pod->meta.deleting) {
      continue;
    }
    // A container that was restarted starts again. The agent knows the windows of first starts
    // only, so for it the files of such a start are those of a running pod.
    if (!WasReady(context, pod) || ReadyAt(context, pod) == WallTime{}) {
      out.is_starting = true;
    } else if (!HasKey(context, pod, key.key)) {
      out.has_other_key = true;
    } else if (pod.container != nullptr && pod.container->running &&
               (out.oldest == nullptr ||
                pod.container->started_time < out.oldest->container->started_time)) {
      out.oldest = &pod;
    }
  }
  return out;
}

// True if the tree may have files of a suspended bundle: the pod may have started with that bundle,
// or the tree is not the active one. An earlier tree is offered for as long as the agent watches
// it, also if all pods that mounted it are gone, so the time of a pod says nothing about it. The
// active tree is newer than the suspension, because that renews the tree.
bool MayHaveSuspended(const Bundles& bundles, const LiveKey& key, const NodeState& node,
                      const PodView& pod) {
  const api::SuspendedBundle* suspended = bundles.LastSuspendedFor(key);
  return suspended != nullptr &&
         (pod.container->started_time <= suspended->suspended_time ||
          node.reported->harvestable.generation != node.reported->generation);
}

bool IsHarvestedAlready(const api::HarvestStatus& last, const std::string& set) {
  const auto& sets = last.harvested_sets;
  return std::find(sets.begin(), sets.end(), set) != sets.end();
}

bool IsBetter(const Context& context, const HarvestCandidate& a, const HarvestCandidate& b) {
  return a.offer->units != b.offer->units ? a.offer->units > b.offer->units
                                          : context.nodes[a.node].view->node->meta.name <
                                                context.nodes[b.node].view->node->meta.name;
}

}  // namespace

HarvestElection ElectHarvest(const Context& context, const Bundles& bundles, const LiveKey& key,
                             const api::HarvestStatus& last) {
  const api::BundleStatus& bundle = *bundles.For(key);
  HarvestElection out;
  const auto refuse = [&](size_t node, std::string_view why) {
    if (out.refusal.empty()) {
      out.refusal = fmt::format("node {}: {}", context.nodes[node].view->node->meta.name, why);
    }
  };
  for (const size_t index : context.targets[key.target].nodes) {
    const NodeState& node = context.nodes[index];
    const api::Harvestable* offer =
        node.reported == nullptr ? nullptr : &node.reported->harvestable;
    // The agent compares its units with the bundles that are active on its node.
    if (offer == nullptr || offer->generation.empty() || !node.ready ||
        !IsActive(node, bundle.digest) || IsHarvestedAlready(last, offer->set)) {
      continue;
    }
    const DirectoryPods pods = FindPodsOfDirectory(context, key, index, offer->run_as);
    if (!offer->message.empty()) {
      refuse(index, offer->message);
    } else if (pods.has_other_key) {
      refuse(index, "pods with another image or device count use the same directory");
    } else if (pods.oldest != nullptr && MayHaveSuspended(bundles, key, node, *pods.oldest)) {
      refuse(index, "its pods may have started with a bundle that is suspended now");
    } else if (offer->units > 0 && pods.oldest != nullptr && !pods.is_starting) {
      const HarvestCandidate candidate{.node = index, .pod = pods.oldest, .offer = offer};
      if (!out.chosen || IsBetter(context, candidate, *out.chosen)) {
        out.chosen = candidate;
      }
    }
  }
  return out;
}

}  // namespace cachewarm::plan
