// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/registry/retry_budget.h"

#include <algorithm>

#include "lib/base/backoff.h"
#include "lib/http/text/retry_after.h"

namespace cachewarm::bundle {
namespace {

constexpr Duration kRetryAfterMax = std::chrono::seconds(60);

Duration Spread(Duration asked, double random) {
  const auto least = static_cast<double>(std::min(asked, kRetryAfterMax).count());
  return Duration(static_cast<int64_t>(least * (1.0 + random / 4)));
}

}  // namespace

RetryBudget::RetryBudget(const Clock& clock, const Random& random, int tries)
    : clock_(clock), random_(random), tries_(tries) {}

absl::Status RetryBudget::WaitBeforeRetry(const absl::Status& why, std::stop_token stop) {
  if (++failures_ >= tries_) {
    return why;
  }
  const Duration asked = Spread(http::RetryAfterOf(why).value_or(Duration{0}), random_());
  const Duration own = BackoffDelay({}, failures_ - 1, random_());
  return SleepFor(clock_, std::max(asked, own), stop)
             ? absl::OkStatus()
             : absl::CancelledError("stopped while waiting to retry a registry request");
}

}  // namespace cachewarm::bundle
