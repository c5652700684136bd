// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cachewarm {

using Duration = std::chrono::milliseconds;
// UTC. Kubernetes writes whole seconds; what we write ourselves keeps milliseconds.
using WallTime = std::chrono::sys_time<Duration>;
// Only differences mean something; never goes back.
using MonoTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// Time as an argument. Thread-safe. Production uses SystemClock(), tests use FakeClock of
// tests/fakes; nothing else in the tree reads a clock.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  virtual WallTime Now() const = 0;
  virtual MonoTime Monotonic() const = 0;

  // Blocks with `lock` held on entry and exit until `wake` is notified, `deadline` passes or
  // `stop` is requested. May wake without a reason: callers loop over their own condition.
  virtual void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable_any& wake,
                         MonoTime deadline, std::stop_token stop) const = 0;
};

// The machine's clock; lives for ever.
const Clock& SystemClock();

// Blocks for `duration` or until `stop`; false when it was stopped.
bool SleepFor(const Clock& clock, Duration duration, std::stop_token stop);

// RFC 3339 in UTC, whole seconds ("2026-11-21T08:00:00Z"), as Kubernetes writes metav1.Time.
std::string FormatTime(WallTime time);
// Same with milliseconds, as metav1.MicroTime is read ("2026-11-21T08:00:00.000000Z").
std::string FormatMicroTime(WallTime time);
// Reads either; offsets other than Z are refused.
absl::StatusOr<WallTime> ParseTime(std::string_view text);

// "850ms", "12s", "4m05s", "3h41m", "2d3h": what kubectl users read.
std::string FormatDuration(Duration duration);

}  // namespace cachewarm
