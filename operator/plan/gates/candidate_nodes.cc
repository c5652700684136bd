// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/gates/candidate_nodes.h"

#include <algorithm>

#include "lib/api/reasons.h"
#include "operator/plan/builders/job_capacity.h"

namespace cachewarm::plan {

namespace {

int SlotsBefore(const DistributedContext& context, size_t node) {
  const auto waits = context.slots_before.find(node);
  return waits == context.slots_before.end() ? 0 : waits->second;
}

// Adds a prepared node with capacity to the list in `out` that matches its state.
void Classify(const DistributedContext& context, const WaitEstimator& estimator,
              const PodFactors& factors, size_t index, CandidateNodes& out) {
  const NodeState& node = context.nodes[index];
  const LiveKey* key = FindKey(context, node.target, factors);
  if (key == nullptr) {
    out.cold.push_back(index);
    return;
  }
  const api::BundleStatus* bundle = context.bundles.For(*key);
  if (bundle == nullptr) {
    const api::BuilderStatus* builder = FindBuilder(context.builders, key->key);
    if (builder != nullptr && IsRunning(*builder) && !MayNeverStart(context, *builder)) {
      out.warming.push_back({.node = index, .forecast = estimator.ForecastBuild(*key)});
    } else {
      out.cold.push_back(index);
    }
    return;
  }
  const api::NodeBundle* reported = ServingBundle(node, *bundle);
  const bool failed = reported != nullptr && reported->state == api::BundleState::kFailed;
  if (reported != nullptr && reported->state == api::BundleState::kActive) {
    out.warm.push_back(index);
  } else if (!node.view->agent_ready || (failed && reported->reason != api::reason::kFetchFailed)) {
    // Waiting helps neither without an agent, nor after a permanent failure (full disk, rejected
    // bundle).
    out.cold.push_back(index);
  } else if (failed) {
    out.failing.push_back(index);
  } else {
    out.warming.push_back(
        {.node = index,
         .forecast = estimator.ForecastFetch(node, *bundle, SlotsBefore(context, index))});
  }
}

}  // namespace

CandidateNodes FindCandidateNodes(const DistributedContext& context, const WaitEstimator& estimator,
                                  const Reserved& reserved, const PodShape& shape,
                                  const PodFactors& factors) {
  CandidateNodes out;
  for (size_t i = 0; i < context.nodes.size(); ++i) {
    const NodeState& node = context.nodes[i];
    if (!node.prepared && HasStartupTaintFor(shape, *node.view->node)) {
      // Do not list this new node as unusable: its taint keeps the pod off until the node is
      // prepared. If the release excluded the node, the pod would need an additional node.
      continue;
    }
    if (node.possible && node.ready && !node.prepared) {
      out.unusable.push_back(i);
    } else if (Fits(context, reserved, i, shape)) {
      if (node.prepared) {
        Classify(context, estimator, factors, i, out);
      } else {
        out.cold.push_back(i);
      }
    }
  }
  return out;
}

const CandidateNodes& CandidateNodesCache::For(const PodView& pod) {
  auto found = known_.find({pod.shape.get(), pod.factors});
  if (found == known_.end()) {
    return known_
        .emplace(std::pair(pod.shape.get(), pod.factors),
                 FindCandidateNodes(context_, estimator_, reserved_, *pod.shape, pod.factors))
        .first->second;
  }
  const auto is_full = [&](size_t node) {
    return reserved_.contains(node) && !Fits(context_, reserved_, node, *pod.shape);
  };
  CandidateNodes& candidates = found->second;
  std::erase_if(candidates.warm, is_full);
  std::erase_if(candidates.failing, is_full);
  std::erase_if(candidates.cold, is_full);
  std::erase_if(candidates.warming, [&](const WarmingNode& each) { return is_full(each.node); });
  return candidates;
}

std::vector<std::string> Hostnames(const Context& context, const std::vector<size_t>& nodes,
                                   size_t most) {
  std::vector<std::string> out(std::min(nodes.size(), most));
  std::transform(nodes.begin(), nodes.begin() + static_cast<ptrdiff_t>(out.size()), out.begin(),
                 [&](size_t node) { return std::string(context.nodes[node].hostname); });
  return out;
}

}  // namespace cachewarm::plan
