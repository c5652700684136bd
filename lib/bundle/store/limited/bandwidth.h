// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <stop_token>

#include "absl/status/status.h"
#include "lib/base/clock.h"

namespace cachewarm::bundle {

// A token bucket: bytes that many transfers together may take in a second. It holds what 250 ms
// bring (at least 64 KiB), so that a transfer after a pause starts at once. Thread-safe.
class Bandwidth {
 public:
  // `bytes_per_second` > 0; `clock` must outlive it.
  Bandwidth(int64_t bytes_per_second, const Clock& clock);

  // Takes `bytes`, then waits until they have been earned; CANCELLED at once when stopped.
  // Taking first and waiting afterwards keeps pieces that are larger than the bucket in the rate,
  // and everybody's turn comes in the order of taking.
  absl::Status Acquire(int64_t bytes, std::stop_token stop);

 private:
  const int64_t bytes_per_second_;
  const Clock& clock_;
  std::mutex mutex_;
  std::chrono::nanoseconds
      earned_at_;  // of the monotonic clock: when all that was taken will have been earned
};

}  // namespace cachewarm::bundle
