// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/limited/bandwidth.h"

#include <algorithm>

namespace cachewarm::bundle {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kBurst = std::chrono::milliseconds(250);
constexpr int64_t kBurstBytesMin = 64 << 10;

nanoseconds TimeOf(int64_t bytes, int64_t bytes_per_second) {
  return nanoseconds(static_cast<int64_t>(static_cast<double>(bytes) * 1e9 /
                                          static_cast<double>(bytes_per_second)));
}

}  // namespace

Bandwidth::Bandwidth(int64_t bytes_per_second, const Clock& clock)
    : bytes_per_second_(bytes_per_second), clock_(clock), earned_at_(nanoseconds::min()) {}

absl::Status Bandwidth::Acquire(int64_t bytes, std::stop_token stop) {
  const nanoseconds burst = std::max(kBurst, TimeOf(kBurstBytesMin, bytes_per_second_));
  nanoseconds wait{0};
  {
    const std::lock_guard lock(mutex_);
    const nanoseconds now = clock_.Monotonic().time_since_epoch();
    earned_at_ = std::max(earned_at_, now - burst) + TimeOf(bytes, bytes_per_second_);
    wait = earned_at_ - now;
  }
  if (!SleepFor(clock_, std::chrono::duration_cast<Duration>(std::max(wait, nanoseconds(0))),
                stop)) {
    return absl::CancelledError("stopped while waiting for the bandwidth limit");
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::bundle
