// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/base/clock.h"

namespace cachewarm {

// min(first * factor^attempt, most), then spread over [1 - jitter, 1] of itself.
struct BackoffPolicy {
  Duration first{500};
  Duration most{30'000};
  double factor = 2.0;
  double jitter = 0.5;  // 0 to 1
};

// How long to wait before try number `attempt` + 2, after `attempt` + 1 failures. `random` is in
// [0, 1). Pure.
Duration BackoffDelay(const BackoffPolicy& policy, int attempt, double random);

}  // namespace cachewarm
