// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "operator/plan/plan_context.h"

// Pods for which a hold could break something that the user was promised: whatever could be gained,
// they are let go at once. DecideNeverHeld() (decisions.h) says what holds for a whole workload.
namespace cachewarm::plan {

// Fewer pods are available than the workload had and promises (status.min_available).
bool IsBelowMinAvailable(const PlanContext& context);

// Why this held pod is let go at once, one of api::reason::kReleased…; "" when it may wait.
std::string_view WhyNeverHeld(const PlanContext& context, const api::Pod& pod);

}  // namespace cachewarm::plan
