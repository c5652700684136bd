// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/base/clock.h"

namespace cachewarm {

// The delay is min(first * factor^attempt, most), reduced by a random share of up to `jitter`.
struct BackoffPolicy {
  Duration first{500};
  Duration most{30'000};
  double factor = 2.0;
  double jitter = 0.5;  // largest random reduction, as a share of the delay: 0 to 1
};

// Returns the delay before the next retry. `attempt` is the number of retries so far: 0 after the
// first failure. `random` is in [0, 1). Pure.
Duration BackoffDelay(const BackoffPolicy& policy, int attempt, double random);

}  // namespace cachewarm
