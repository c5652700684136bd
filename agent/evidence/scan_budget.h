// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/base/clock.h"

namespace cachewarm::agent {

struct ScanBudgetLimits {
  int64_t names_max = 1'000'000;  // names of one tree that are visited in one window
  int64_t events_per_name = 16;   // so many events cost as much as one visited name
  Duration window{600'000};
};

// Limits the work that one tree causes per time: visited names and handled events. Not thread-safe.
class ScanBudget {
 public:
  explicit ScanBudget(const ScanBudgetLimits& limits) : limits_(limits) {}

  // Returns the number of names that may still be visited in the window of `now`; 0 if none.
  int64_t NamesLeft(MonoTime now) {
    if (now >= RenewsAt()) {
      begin_ = now;
      spent_ = 0;
    }
    return spent_ >= limits_.names_max * limits_.events_per_name
               ? 0
               : limits_.names_max - spent_ / limits_.events_per_name;
  }
  bool IsHalfLeft(MonoTime now) { return NamesLeft(now) * 2 >= limits_.names_max; }
  void SpendNames(int64_t names) { spent_ += names * limits_.events_per_name; }
  void SpendEvent() { ++spent_; }

  // Returns the end of the current window.
  MonoTime RenewsAt() const { return begin_ + limits_.window; }
  // Returns the pause after a scan of the whole tree with which repeated scans use half of the
  // budget.
  Duration PauseAfter(int64_t names) const {
    return Duration(limits_.window.count() * 2 * names / limits_.names_max);
  }

 private:
  const ScanBudgetLimits limits_;
  MonoTime begin_{};
  int64_t spent_ = 0;  // in events
};

}  // namespace cachewarm::agent
