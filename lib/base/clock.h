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
// A time in UTC. Kubernetes writes whole seconds; cachewarm keeps milliseconds in its own fields.
using WallTime = std::chrono::sys_time<Duration>;
// A monotonic time. Only the difference of two such times has a meaning.
using MonoTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// Provides the time. Code takes a Clock and never reads the system's clock itself, so that tests
// can pass a FakeClock (tests/fakes). Production passes SystemClock(). Thread-safe.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  virtual WallTime Now() const = 0;
  virtual MonoTime Monotonic() const = 0;

  // Blocks until `wake` is notified, `deadline` passes or `stop` is requested. `lock` is held on
  // entry and exit. May return earlier: callers check their own condition in a loop.
  virtual void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable_any& wake,
                         MonoTime deadline, std::stop_token stop) const = 0;
};

// Returns the clock of the machine. The reference is valid until the process ends.
const Clock& SystemClock();

// Blocks for `duration` or until `stop` is requested; returns false in the latter case.
bool SleepFor(const Clock& clock, Duration duration, std::stop_token stop);

// Formats the time in UTC as RFC 3339 without a fraction ("2026-11-21T08:00:00Z"), as Kubernetes
// writes metav1.Time.
std::string FormatTime(WallTime time);
// Like FormatTime(), but with the fraction of the second in six digits, as metav1.MicroTime
// ("2026-11-21T08:00:00.123000Z"). The last three digits are 0.
std::string FormatMicroTime(WallTime time);
// Parses an RFC 3339 time with up to nine digits of a fraction and any offset ("Z", "+02:00").
// INVALID_ARGUMENT for any other text, and for a time outside the years 0 to 9999 in UTC.
absl::StatusOr<WallTime> ParseTime(std::string_view text);

// Formats a duration for users, in the style of kubectl: "850ms", "12s", "4m05s", "3h41m", "2d3h".
std::string FormatDuration(Duration duration);

}  // namespace cachewarm
