// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/report/model.h"

// The sections of the page about what the cache saved and what it cost.
namespace cachewarm::cli::report {

std::string SavingsSection(const Report& report);
std::string CostsSection(const Report& report);

}  // namespace cachewarm::cli::report
