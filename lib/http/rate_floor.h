// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/base/clock.h"

namespace cachewarm::http {

struct RateFloorLimits {
  int64_t bytes_min = 0;  // to transfer in each window; 0: any rate is accepted
  Duration window{60'000};
};

// Detects a transfer that is not idle but too slow to ever end. Pure; not thread-safe.
class RateFloor {
 public:
  explicit RateFloor(const RateFloorLimits& limits) : limits_(limits) {}

  // Adds `bytes` that arrived after a wait. Returns false at the end of a window of waiting in
  // which fewer than bytes_min bytes were transferred.
  bool Add(Duration waited, int64_t bytes) {
    waited_ += waited;
    bytes_ += bytes;
    if (waited_ < limits_.window) {
      return true;
    }
    const bool is_fast = bytes_ >= limits_.bytes_min;
    waited_ = Duration{0};
    bytes_ = 0;
    return is_fast;
  }

 private:
  const RateFloorLimits limits_;
  Duration waited_{0};
  int64_t bytes_ = 0;
};

}  // namespace cachewarm::http
