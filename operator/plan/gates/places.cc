// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/gates/places.h"

#include <algorithm>

#include "lib/api/reasons.h"
#include "operator/plan/building/job_room.h"

namespace cachewarm::plan {

namespace {

// Sorts a prepared node with room into `out`.
void Place(const Round& round, const Economy& economy, const PodFactors& factors, size_t index,
           Places& out) {
  const NodeState& node = round.nodes[index];
  const LiveKey* key = FindKey(round, node.target, factors);
  if (key == nullptr) {
    out.cold.push_back(index);
    return;
  }
  const api::BundleStatus* bundle = BundleFor(round, *key);
  if (bundle == nullptr) {
    const api::BuilderStatus* builder = FindBuilder(round.out.status, key->key);
    if (builder != nullptr && IsRunning(*builder) && !MayNeverBegin(round, *builder)) {
      out.coming.push_back({.node = index, .forecast = economy.OfBuild(*key)});
    } else {
      out.cold.push_back(index);
    }
    return;
  }
  const api::NodeBundle* reported = ReportedBundle(node, bundle->digest);
  const bool failed = reported != nullptr && reported->state == api::BundleState::kFailed;
  if (reported != nullptr && reported->state == api::BundleState::kActive) {
    out.warm.push_back(index);
  } else if (!node.view->agent_ready || (failed && reported->reason != api::reason::kFetchFailed)) {
    out.cold.push_back(index);  // a full disk or a refused bundle does not pass by waiting
  } else if (failed) {
    out.stuck.push_back(index);
  } else {
    out.coming.push_back({.node = index, .forecast = economy.OfFetch(node, *bundle)});
  }
}

}  // namespace

Places FindPlaces(const Round& round, const Economy& economy, const PodShape& shape,
                  const PodFactors& factors) {
  Places out;
  for (size_t i = 0; i < round.nodes.size(); ++i) {
    const NodeState& node = round.nodes[i];
    if (!node.prepared && IsWarmingFor(shape, *node.view->node)) {
      continue;  // a pod that is kept off it would need yet another node
    }
    if (node.possible && node.ready && !node.prepared) {
      out.unusable.push_back(i);
    } else if (CanTake(round, i, shape)) {
      if (node.prepared) {
        Place(round, economy, factors, i, out);
      } else {
        out.cold.push_back(i);
      }
    }
  }
  return out;
}

const Places& PlacesOf::For(const PodView& pod) {
  auto found = known_.find({pod.shape.get(), pod.factors});
  if (found == known_.end()) {
    return known_
        .emplace(std::pair(pod.shape.get(), pod.factors),
                 FindPlaces(round_, economy_, *pod.shape, pod.factors))
        .first->second;
  }
  const auto is_full = [&](size_t node) {
    return round_.taken.contains(node) && !CanTake(round_, node, *pod.shape);
  };
  Places& places = found->second;
  std::erase_if(places.warm, is_full);
  std::erase_if(places.stuck, is_full);
  std::erase_if(places.cold, is_full);
  std::erase_if(places.coming, [&](const Coming& each) { return is_full(each.node); });
  return places;
}

std::vector<std::string> Hostnames(const Round& round, const std::vector<size_t>& nodes,
                                   size_t most) {
  std::vector<std::string> out(std::min(nodes.size(), most));
  std::transform(nodes.begin(), nodes.begin() + static_cast<ptrdiff_t>(out.size()), out.begin(),
                 [&](size_t node) { return std::string(round.nodes[node].hostname); });
  return out;
}

}  // namespace cachewarm::plan
