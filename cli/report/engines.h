// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/report/model.h"

namespace cachewarm::cli::report {

// Returns the section about start-up phases and KV caches as engines log them, cold beside warm;
// "" if no engine reported a start.
std::string EnginesSection(const Report& report);

}  // namespace cachewarm::cli::report
