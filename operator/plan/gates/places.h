// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/plan/gates/economy.h"
#include "operator/plan/round.h"

// Where held pods could go now, and what waiting would make of it. Pure.
namespace cachewarm::plan {

struct Coming {
  size_t node = 0;
  std::optional<Forecast> forecast;  // nothing: it gets warm, nobody can tell when
};

// Nodes with room, as indices of Round::nodes.
struct Places {
  std::vector<size_t> warm;
  std::vector<Coming> coming;
  std::vector<size_t> stuck;  // its fetch fails; the agent tries again
  std::vector<size_t> cold;
  std::vector<size_t> unusable;  // no usable directory: a pod that mounts it could crash

  bool none() const { return warm.empty() && coming.empty() && stuck.empty() && cold.empty(); }
};

// What a pod of this shape and these factors finds.
Places FindPlaces(const Round& round, const Economy& economy, const PodShape& shape,
                  const PodFactors& factors);

// Pods of one template share their places: found once, and what has been taken since is dropped.
class PlacesOf {
 public:
  PlacesOf(const Round& round, const Economy& economy) : round_(round), economy_(economy) {}

  const Places& For(const PodView& pod);

 private:
  const Round& round_;
  const Economy& economy_;
  std::map<std::pair<const PodShape*, PodFactors>, Places> known_;
};

// The first `most` of them.
std::vector<std::string> Hostnames(const Round& round, const std::vector<size_t>& nodes,
                                   size_t most);

}  // namespace cachewarm::plan
