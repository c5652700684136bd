// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/bundle_status.h"
#include "lib/api/cache_warmup.h"
#include "operator/factors/start_factors.h"

// Finds the cause of a start that compiled. Pure.
namespace cachewarm::factors {

// A start, and the bundle that it could have used.
struct ExplainedStart {
  api::StartResult result = api::StartResult::kUnknown;
  std::string node;
  StartFactors factors;
  // Names of the parts of the engine's own key that differ from those of the builder, as the agent
  // reported them (api::StartEvidence); empty if none is known to differ.
  std::vector<std::string> engine_factors;
  // The bundle that serves the pod, else the bundle of the same warmup that is closest to it; null
  // if the warmup has none.
  const api::BundleStatus* bundle = nullptr;
  bool serves = false;      // the bundle serves the pod's key
  bool was_active = false;  // the bundle was active on the node when the pod started
};

// The most likely cause.
struct Cause {
  // Name of the factor (start_factors.h), or "engine/" and the name of a part of the engine's key;
  // empty: none is known to differ.
  std::string factor;
  std::string text;  // for users: what differs, why it matters, what to do; at most kCauseBytesMax
};

inline constexpr std::string_view kEngineFactorPrefix = "engine/";

// As the CRD limits status.starts.recent[].cause.
inline constexpr size_t kCauseBytesMax = 640;

// Returns why the pod compiled. Returns no cause for a hit, an unknown result, and a builder of the
// first bundle of its warmup.
std::optional<Cause> FindCause(const ExplainedStart& start);

// Returns the bundle that differs from the pod in the fewest factors of the key (GPU type, image,
// number of devices, container, CPU class), the newest of equal ones; null if there is none.
const api::BundleStatus* ClosestBundle(const std::vector<api::BundleStatus>& bundles,
                                       const StartFactors& pod);

}  // namespace cachewarm::factors
