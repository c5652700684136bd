// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "operator/plan/round.h"

// Pods for which a hold could break something that the user was promised: whatever could be gained,
// they are let go at once. FindNeverHeld() (decisions.h) says what holds for a whole workload.
namespace cachewarm::plan {

// Fewer pods are available than the workload had and promises (status.promised).
bool IsBelowPromise(const Round& round);

// Why this held pod is let go at once, one of api::reason::kReleased…; "" when it may wait.
std::string_view WhyNeverHeld(const Round& round, const api::Pod& pod);

}  // namespace cachewarm::plan
