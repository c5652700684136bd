// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"

namespace cachewarm::bundle {

// The tries of one request. Not thread-safe.
class RetryBudget {
 public:
  // `clock` and `random` must outlive it. `tries` counts the first one too.
  RetryBudget(const Clock& clock, const Random& random, int tries);

  // Waits before the next try: with backoff from 0.5 s, and as long as the registry asked for, of
  // that at most 60 s and up to a quarter more, so that a thousand nodes do not come back at once.
  // `why` when the tries are spent; CANCELLED at once when stopped.
  absl::Status WaitBeforeRetry(const absl::Status& why, std::stop_token stop);
  // The last try brought something: all tries but one are there again.
  void RecordProgress() { failures_ = 0; }

 private:
  const Clock& clock_;
  const Random& random_;
  const int tries_;
  int failures_ = 0;
};

}  // namespace cachewarm::bundle
