// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <vector>

#include "lib/base/clock.h"

namespace cachewarm::fakes {

// A clock that moves only by Advance(). Thread-safe. Both readings move together; Monotonic()
// starts at 1000 s, Now() at 2026-01-01T00:00:00Z by default. Must outlive its waiters.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(WallTime start = std::chrono::sys_days(std::chrono::year_month_day(
                         std::chrono::year(2026), std::chrono::January, std::chrono::day(1))))
      : now_(start) {}

  WallTime Now() const override {
    std::lock_guard lock(mutex_);
    return now_;
  }

  MonoTime Monotonic() const override {
    std::lock_guard lock(mutex_);
    return monotonic_;
  }

  void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable_any& wake,
                 MonoTime deadline, std::stop_token stop) const override {
    const Waiter waiter{&wake, deadline};
    Enter(&waiter);
    // Advance() cannot lock the caller's mutex, so it can run between Enter() and the wait. The
    // caller therefore rechecks its condition every 2 ms.
    if (!stop.stop_requested() && Monotonic() < deadline) {
      wake.wait_for(lock, std::chrono::milliseconds(2));
    }
    Leave(&waiter);
  }

  // Moves time on and wakes the waiters whose deadline has passed.
  void Advance(Duration by) {
    std::lock_guard lock(mutex_);
    now_ += by;
    monotonic_ += by;
    for (const Waiter* waiter : waiters_) {
      if (waiter->deadline <= monotonic_) {
        waiter->wake->notify_all();
      }
    }
  }

  // Blocks until `count` threads wait for a future time; false after `limit` of real time.
  // Makes "advance once the other thread sleeps" exact.
  bool AwaitWaiters(int count, std::chrono::seconds limit = std::chrono::seconds(20)) const {
    std::unique_lock lock(mutex_);
    return entered_.wait_for(lock, limit, [&] {
      return std::count_if(waiters_.begin(), waiters_.end(), [&](const Waiter* waiter) {
               return waiter->deadline > monotonic_;
             }) >= count;
    });
  }

 private:
  struct Waiter {
    std::condition_variable_any* wake;
    MonoTime deadline;
  };

  void Enter(const Waiter* waiter) const {
    std::lock_guard lock(mutex_);
    waiters_.push_back(waiter);
    entered_.notify_all();
  }

  void Leave(const Waiter* waiter) const {
    std::lock_guard lock(mutex_);
    std::erase(waiters_, waiter);
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable entered_;
  mutable std::vector<const Waiter*> waiters_;
  WallTime now_;
  MonoTime monotonic_{std::chrono::seconds(1000)};
};

}  // namespace cachewarm::fakes
