// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lib/api/condition.h"
#include "lib/api/node_cache.h"
#include "lib/base/clock.h"
#include "lib/fingerprint/node_facts.h"

namespace cachewarm::agent {

// The facts of the node, and whether the GPU driver has answered.
struct GpuObservation {
  fingerprint::NodeFacts facts;
  // True until the driver has answered once: `facts` then has no GPU type.
  bool is_gpu_unknown = false;
  std::string probe_error;  // why the last query of the driver failed; empty: it succeeded
};

// Returns the GPU type to report: empty if it is unknown, or if the node has several kinds of GPU
// and the facts file does not declare a type. The operator gives a node without a type no bundle.
std::string ReportedGpuType(const GpuObservation& gpu);

// Returns the conditions of the NodeCache that concern GPUs (api::kGpu...): `before`, updated from
// `gpu` and from `offer`, the accelerators that the node's API objects show. A condition that has
// never been True is not listed. Drops conditions of other types. Pure.
std::vector<api::Condition> GpuConditions(const std::vector<api::Condition>& before,
                                          const GpuObservation& gpu, const api::NodeOffer& offer,
                                          WallTime now);

}  // namespace cachewarm::agent
