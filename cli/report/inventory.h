// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/report/model.h"

// The sections of the page about bundles, nodes and problems.
namespace cachewarm::cli::report {

std::string BundlesSection(const Report& report);
std::string NodesSection(const Report& report);
// Returns an empty text if there is no problem.
std::string ProblemsSection(const Report& report);

}  // namespace cachewarm::cli::report
