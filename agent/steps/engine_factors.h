// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "agent/evidence/own_reads.h"
#include "agent/steps/context.h"
#include "lib/api/node_cache.h"
#include "lib/capture/engine_factors.h"

// The parts of the engine's cache key at a start (lib/capture/engine_factors.h). Thread-safe.
namespace cachewarm::agent {

// Returns the factors that the engine wrote to the tree between `begin` and `end`. Returns none if
// it wrote none or no salt is known; if a file is refused, also logs a warning.
capture::EngineFactors EngineFactorsIn(const Context& context, const std::string& generation,
                                       WallTime begin, WallTime end);

// Returns the names of the factors of this start that differ from those of the builder whose bundle
// is in the tree. If the tree has several bundles, compares with the one that differs least;
// returns none if one of them has no factors.
std::vector<std::string> DifferingKeyFactors(const Context& context, const std::string& generation,
                                             const api::StartWindow& window);

}  // namespace cachewarm::agent
