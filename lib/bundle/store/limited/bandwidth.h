// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <stop_token>

#include "absl/status/status.h"
#include "lib/base/clock.h"

namespace cachewarm::bundle {

// Limits the bytes per second of all transfers that share this object (token bucket). The bucket
// holds the tokens of 250 ms, but at least 64 KiB, so that a transfer starts at once after a pause.
// Thread-safe.
class Bandwidth {
 public:
  // `bytes_per_second` > 0; `clock` must outlive this object.
  Bandwidth(int64_t bytes_per_second, const Clock& clock);

  // Reserves `bytes`, then blocks until the rate allows them; callers proceed in the order of their
  // reservations. `bytes` may exceed the size of the bucket. CANCELLED soon after `stop`.
  absl::Status Acquire(int64_t bytes, std::stop_token stop);

 private:
  const int64_t bytes_per_second_;
  const Clock& clock_;
  std::mutex mutex_;
  std::chrono::nanoseconds
      earned_at_;  // monotonic time at which the rate covers all bytes reserved so far
};

}  // namespace cachewarm::bundle
