// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "lib/base/clock.h"

namespace cachewarm {
namespace {

class MachineClock final : public Clock {
 public:
  WallTime Now() const override {
    return std::chrono::floor<Duration>(std::chrono::system_clock::now());
  }

  MonoTime Monotonic() const override {
    return std::chrono::floor<Duration>(std::chrono::steady_clock::now());
  }

  void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable_any& wake,
                 MonoTime deadline, std::stop_token stop) const override {
    // Wait for at most an hour: a distant deadline would overflow when the library converts it to
    // nanoseconds. Waking up early is allowed, because callers loop.
    const MonoTime soon = std::min(deadline, Monotonic() + std::chrono::hours(1));
    bool notified = false;
    wake.wait_until(lock, stop, soon, [&notified] { return std::exchange(notified, true); });
  }
};

}  // namespace

const Clock& SystemClock() {
  static const MachineClock clock;
  return clock;
}

}  // namespace cachewarm
