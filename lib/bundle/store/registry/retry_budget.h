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
  // `clock` and `random` must outlive this object. `tries` includes the first attempt.
  RetryBudget(const Clock& clock, const Random& random, int tries);

  // Waits before the next attempt and returns OK. The wait is an exponential backoff that begins
  // with 0.5 s. If `why` has a Retry-After, the wait is at least that time, capped at 60 s and
  // lengthened randomly by up to a quarter, so that a thousand nodes do not retry at once. Returns
  // `why` at once if no attempt is left, and CANCELLED soon after `stop`.
  absl::Status WaitBeforeRetry(const absl::Status& why, std::stop_token stop);
  // Resets the number of failed attempts to 0. Call after attempts that transferred many bytes.
  void RecordProgress() { failures_ = 0; }

 private:
  const Clock& clock_;
  const Random& random_;
  const int tries_;
  int failures_ = 0;
};

}  // namespace cachewarm::bundle
