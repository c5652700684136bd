// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "operator/plan/plan_context.h"

// Finds pods that must be released at once, because holding them could violate an availability
// constraint. DecideNeverHeld() (decisions.h) decides for a whole workload.
namespace cachewarm::plan {

// True if fewer pods are available than status.minAvailable.
bool IsBelowMinAvailable(const PlanContext& context);

// Returns the reason why this held pod must be released at once, one of api::reason::kReleased…; ""
// if it may be held.
std::string_view WhyNeverHeld(const PlanContext& context, const api::Pod& pod);

}  // namespace cachewarm::plan
