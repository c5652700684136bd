// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "lib/base/clock.h"

namespace cachewarm {

// Stores in an error status how long a server asked its clients to wait (Retry-After). An OK status
// stays unchanged.
void SetRetryAfter(absl::Status& status, Duration wait);
// Returns the stored duration; nullopt if there is none.
std::optional<Duration> RetryAfterOf(const absl::Status& status);

}  // namespace cachewarm
