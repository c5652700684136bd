// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cli/output.h"
#include "lib/api/starts.h"
#include "lib/codec/json_fwd.h"

// Cold and warm starts side by side, as engines report them in their logs
// (lib/api/engine_starts.h).
namespace cachewarm::status {

// Returns a table with its header; empty if no engine reported a start.
std::vector<cli::Row> EngineTable(const api::Starts& starts);
// Returns the same as a list of JSON objects. A number that no engine reported is absent.
codec::Json EngineJson(const api::Starts& starts);

}  // namespace cachewarm::status
