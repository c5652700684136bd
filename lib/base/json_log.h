// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lib/base/clock.h"
#include "lib/base/log.h"

namespace cachewarm {

// Returns a log that writes lines of `level` and above to standard error. `clock` must outlive the
// log.
std::unique_ptr<Log> MakeJsonLog(LogLevel level, const Clock& clock);

}  // namespace cachewarm
