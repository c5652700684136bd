// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "lib/base/clock.h"

namespace cachewarm {

// How long a server asked us to wait (Retry-After and its like), kept in the status that tells of
// its refusal. No effect on OK.
void SetRetryAfter(absl::Status& status, Duration wait);
// nullopt: it did not ask.
std::optional<Duration> RetryAfterOf(const absl::Status& status);

}  // namespace cachewarm
