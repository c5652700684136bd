// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/report/scale.h"

// Charts as inline SVG. Horizontal positions are percentages and texts have a fixed size, so that a
// chart fills any width from 260 pixels on and stays readable. Labels do not overlap: each has its
// own line or column, and is cut to the width of that. Texts are plain: the functions escape them.
namespace cachewarm::cli::report {

// Colour and shape of a mark; the stylesheet defines the classes (style.cc).
enum class Mark { kWarm, kPartial, kCold, kMissed, kNeutral };
std::string_view ClassOf(Mark mark);  // "warm"

struct Bar {
  double value = 0;
  Mark mark = Mark::kWarm;
};

struct BarRow {
  std::string label;      // above the bars
  std::string value;      // at the right of the bars; at most 13 columns are shown
  std::vector<Bar> bars;  // below one another, at most 2
};

struct BarChart {
  std::string id;           // unique in the page
  std::string title;        // for screen readers
  std::string description;  // the main statement of the chart, for screen readers
  Unit unit = Unit::kCount;
  std::vector<BarRow> rows;  // not empty
};
std::string Render(const BarChart& chart);

struct Dot {
  double value = 0;
  Mark mark = Mark::kWarm;
};

struct Line {
  double value = 0;
  Mark mark = Mark::kWarm;
};

// Values in their order from left to right, and horizontal lines at given values.
struct DotChart {
  std::string id;
  std::string title;
  std::string description;
  Unit unit = Unit::kSeconds;
  std::vector<Dot> dots;  // not empty
  std::vector<Line> lines;
};
std::string Render(const DotChart& chart);

// Returns the symbol of a mark for a legend.
std::string Symbol(Mark mark);

}  // namespace cachewarm::cli::report
