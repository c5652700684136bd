// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/plan/gates/wait_estimator.h"
#include "operator/plan/plan_context.h"

// Where held pods could go now, and what waiting would make of it. Pure.
namespace cachewarm::plan {

struct WarmingNode {
  size_t node = 0;
  std::optional<Forecast> forecast;  // nothing: it gets warm, nobody can tell when
};

// Nodes with room, as indices of PlanContext::nodes.
struct CandidateNodes {
  std::vector<size_t> warm;
  std::vector<WarmingNode> warming;
  std::vector<size_t> failing;  // its fetch fails; the agent tries again
  std::vector<size_t> cold;
  std::vector<size_t> unusable;  // no usable directory: a pod that mounts it could crash

  bool none() const { return warm.empty() && warming.empty() && failing.empty() && cold.empty(); }
};

// What a pod of this shape and these factors finds.
CandidateNodes FindCandidateNodes(const PlanContext& context, const WaitEstimator& estimator,
                                  const PodShape& shape, const PodFactors& factors);

// Pods of one template share their places: found once, and what has been taken since is dropped.
class CandidateNodesCache {
 public:
  CandidateNodesCache(const PlanContext& context, const WaitEstimator& estimator)
      : context_(context), estimator_(estimator) {}

  const CandidateNodes& For(const PodView& pod);

 private:
  const PlanContext& context_;
  const WaitEstimator& estimator_;
  std::map<std::pair<const PodShape*, PodFactors>, CandidateNodes> known_;
};

// The first `most` of them.
std::vector<std::string> Hostnames(const PlanContext& context, const std::vector<size_t>& nodes,
                                   size_t most);

}  // namespace cachewarm::plan
