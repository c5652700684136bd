// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "operator/plan/snapshot.h"

namespace cachewarm::plan {

// What one warmup has to do with one node.
enum class ReadinessState {
  kNone,     // its pods cannot land there, or it does nothing new
  kWarming,  // its directory or its bundles are on their way, or its devices may still show up
  kFailed,   // a bundle failed there, and not because of the store: waiting brings nothing
  kWarm,     // directory prepared, every bundle that the node should have is active
};

struct NodeReadiness {
  ReadinessState state = ReadinessState::kNone;
  std::string message;  // what is waited for, or what failed; without numbers that move
};

// `snapshot` has that node alone in `nodes`; of `pods` only a selector's need to be there.
NodeReadiness EvaluateReadiness(const Snapshot& snapshot);

}  // namespace cachewarm::plan
