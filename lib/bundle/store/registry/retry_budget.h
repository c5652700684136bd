// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"

namespace cachewarm::bundle {

// Counts the attempts of one request and waits between them. Not thread-safe.
class RetryBudget {
 public:
  // `clock` and `random` must outlive it. `tries` includes the first attempt.
  RetryBudget(const Clock& clock, const Random& random, int tries);

  // Blocks before the next attempt and returns OK. The wait is an exponential backoff from 0.5 s.
  // It is at least the Retry-After in `why`, capped at 60 s and lengthened by up to a quarter, so
  // that a thousand nodes do not retry at once. Returns `why` when no attempt is left, CANCELLED
  // soon after `stop`.
  absl::Status WaitBeforeRetry(const absl::Status& why, std::stop_token stop);
  // Call after an attempt that transferred some bytes: restores all attempts but the one that was
  // made.
  void RecordProgress() { failures_ = 0; }

 private:
  const Clock& clock_;
  const Random& random_;
  const int tries_;
  int failures_ = 0;
};

}  // namespace cachewarm::bundle
