// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "operator/factors/start_factors.h"
#include "operator/plan/plan_context.h"

// Explains why pods compiled. Pure.
namespace cachewarm::plan {

// Returns the factors of the pod's start on `node`. Returns none if the salt is unknown.
factors::StartFactors StartFactorsOf(const Context& context, const PodView& pod,
                                     const NodeState& node);

// A counted start.
struct CountedStart {
  const PodView& pod;
  const NodeState& node;
  const api::StartSample& sample;
  WallTime started{};
  const api::StartEvidence* evidence = nullptr;  // null: the agent reported none
  bool had_bundle = false;  // the bundle of its key was active on the node when it started
};

// Returns why the pod compiled and what to do, for users. Returns "" if it did not compile, if the
// salt is unknown, or if the pod was not injected (its annotation then has the reason).
std::string WhyCompiled(const PlanContext& context, const CountedStart& start);

}  // namespace cachewarm::plan
