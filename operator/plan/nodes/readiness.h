// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/plan/values.h"

namespace cachewarm::plan {

// The state of one warmup on one node.
enum class ReadinessState {
  kNone,     // the warmup is inactive, or its pods cannot be scheduled there
  kWarming,  // a directory, bundle or device is still missing, but is expected soon
  kFailed,   // a bundle failed permanently there (not on a store error), or the NodeCache is full
  kWarm,     // directory prepared, every desired bundle is active
};

// Evaluates one warmup on one node. `snapshot.nodes` contains only that node. `snapshot.pods` may
// be empty, except for a warmup with a selector, whose pod template is read from these pods.
ReadinessState EvaluateReadiness(const Snapshot& snapshot);

}  // namespace cachewarm::plan
