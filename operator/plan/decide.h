// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/plan/values.h"

namespace cachewarm::plan {

// Returns the Plan for any Snapshot. Pure: the same Snapshot always gives the same Plan.
// decisions.h lists the stages.
Plan Decide(const Snapshot& snapshot);

}  // namespace cachewarm::plan
