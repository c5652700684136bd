// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace cachewarm::cli::report {

enum class Unit { kCount, kSeconds, kBytes };

struct Tick {
  double value = 0;
  std::string label;  // "30s", "500 MB"
};

// A linear axis that contains 0.
struct Scale {
  double first = 0;
  double last = 1;          // greater than first
  std::vector<Tick> ticks;  // ascending round numbers between first and last, 0 among them

  // Returns the position of `value` between `first` (0) and `last` (1).
  double Position(double value) const;
};

// Returns an axis for finite values from `lowest` to `highest`, with at most `intervals_max`
// intervals (at least 1) between ticks. If both signs occur, each gets at least 3 % of the axis.
Scale MakeScale(double lowest, double highest, Unit unit, int intervals_max);

}  // namespace cachewarm::cli::report
