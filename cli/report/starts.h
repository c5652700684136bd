// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/report/model.h"

// The sections of the page about starts.
namespace cachewarm::cli::report {

// Each start in its order, cold beside warm.
std::string StartsSection(const Report& report);
// Median cold start beside median warm start.
std::string MediansSection(const Report& report);
// Starts by result: how many used the cache, and why the others did not.
std::string ResultsSection(const Report& report);

}  // namespace cachewarm::cli::report
