// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/plan/decisions.h"
#include "operator/plan/gates/wait_estimator.h"

// Finds the nodes to which a held pod could be scheduled now, and forecasts when they will be warm.
// Pure.
namespace cachewarm::plan {

struct WarmingNode {
  size_t node = 0;
  std::optional<Forecast> forecast;  // nullopt: the time is unknown
};

// Indices into Context::nodes. All nodes but the unusable ones have capacity for the pod.
struct CandidateNodes {
  std::vector<size_t> warm;
  std::vector<WarmingNode> warming;
  std::vector<size_t> failing;  // the fetch failed on a store error and is retried
  std::vector<size_t> cold;
  std::vector<size_t> unusable;  // no usable directory: a pod that mounts it could fail

  bool none() const { return warm.empty() && warming.empty() && failing.empty() && cold.empty(); }
};

inline WaitEstimator::Inputs EstimatorInputs(const DistributedContext& context) {
  return {.context = context,
          .bundles = context.bundles,
          .builders = context.builders,
          .starts = context.starts.starts};
}

// True if at most one in ten of `all` nodes is among the `others`. In a large cluster some node is
// always cold or broken, and holding every new pod because of it would cost more than it gains.
constexpr bool IsMinority(size_t others, size_t all) {
  return others * 10 <= all;
}

// Classifies the nodes for a pod of this shape and these factors.
CandidateNodes FindCandidateNodes(const DistributedContext& context, const WaitEstimator& estimator,
                                  const Reserved& reserved, const PodShape& shape,
                                  const PodFactors& factors);

// Caches the candidate nodes per shape and factors. For() drops the nodes whose capacity has been
// reserved for other pods since the last call. All arguments must outlive it.
class CandidateNodesCache {
 public:
  CandidateNodesCache(const DistributedContext& context, const WaitEstimator& estimator,
                      const Reserved& reserved)
      : context_(context), estimator_(estimator), reserved_(reserved) {}

  const CandidateNodes& For(const PodView& pod);

 private:
  const DistributedContext& context_;
  const WaitEstimator& estimator_;
  const Reserved& reserved_;
  std::map<std::pair<const PodShape*, PodFactors>, CandidateNodes> known_;
};

// Returns the hostnames of the first `most` nodes.
std::vector<std::string> Hostnames(const Context& context, const std::vector<size_t>& nodes,
                                   size_t most);

}  // namespace cachewarm::plan
