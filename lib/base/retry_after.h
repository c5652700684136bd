// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "lib/base/clock.h"

namespace cachewarm {

// Stores in an error status the time that a server asked clients to wait (Retry-After). An OK
// status stays unchanged.
void SetRetryAfter(absl::Status& status, Duration wait);
// Returns the stored time, or nullopt.
std::optional<Duration> RetryAfterOf(const absl::Status& status);

}  // namespace cachewarm
