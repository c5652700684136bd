// SPDX-License-Identifier: Apache-2.0
#include "cli/report/scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "fmt/format.h"

namespace cachewarm::cli::report {
namespace {

struct UnitName {
  double value;
  std::string_view name;
};

constexpr std::array<UnitName, 4> kTimes = {{{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}}};
constexpr std::array<UnitName, 6> kBytes = {
    {{1e15, " PB"}, {1e12, " TB"}, {1e9, " GB"}, {1e6, " MB"}, {1e3, " kB"}, {1, " B"}}};
constexpr std::array<UnitName, 4> kCounts = {{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}};

// Steps of an axis of time up to a day, in seconds.
constexpr std::array<double, 21> kTimeSteps = {0.1,  0.2,  0.5,  1,     2,     5,     10,
                                               15,   30,   60,   120,   300,   600,   900,
                                               1800, 3600, 7200, 10800, 21600, 43200, 86400};

// Returns the smallest of 1, 2, 5, 10, 20, ... times `first` that is larger than `step`.
double NextDecimalStep(double step, double first) {
  const double decade = first * std::pow(10, std::floor(std::log10(step / first) + 1e-9));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (decade * factor > step * 1.0001) {
      return decade * factor;
    }
  }
  return decade * 10;
}

double NextStep(double step, Unit unit) {
  if (unit == Unit::kSeconds) {
    const auto* next = std::find_if(kTimeSteps.begin(), kTimeSteps.end(),
                                    [step](double each) { return each > step; });
    return next != kTimeSteps.end() ? *next : NextDecimalStep(step, 86400);
  }
  return NextDecimalStep(step, 1);
}

// Returns the value in the largest unit in which it is a short number: 90s, but 2m.
template <size_t N>
std::string LabelIn(const std::array<UnitName, N>& names, double value) {
  for (const UnitName& unit : names) {
    const double number = value / unit.value;
    const bool is_short = std::abs(number * 2 - std::round(number * 2)) < 1e-6;
    if (std::abs(number) >= 1 && is_short) {
      return std::abs(number) < 1e4 ? fmt::format("{:g}{}", number, unit.name)
                                    : LabelIn(kCounts, number) + std::string(unit.name);
    }
  }
  return fmt::format("{:g}{}", value, names.back().name);
}

std::string LabelOf(double value, Unit unit) {
  if (value == 0) {
    return "0";
  }
  switch (unit) {
    case Unit::kSeconds:
      return LabelIn(kTimes, value);
    case Unit::kBytes:
      return LabelIn(kBytes, value);
    case Unit::kCount:
      break;
  }
  return LabelIn(kCounts, value);
}

}  // namespace

double Scale::Position(double value) const {
  return std::clamp((value - first) / (last - first), 0.0, 1.0);
}

Scale MakeScale(double lowest, double highest, Unit unit, int intervals_max) {
  constexpr double kShareMin = 0.03;
  lowest = std::min(lowest, 0.0);
  highest = std::max(highest, 0.0);
  const double span = std::max(highest - lowest, unit == Unit::kSeconds ? 0.1 : 1);
  Scale scale{.first = lowest < 0 ? std::min(lowest, -kShareMin * span) : 0,
              .last = highest > 0 || lowest == 0 ? std::max(highest, kShareMin * span) : 0};
  if (lowest == 0) {
    scale.last = span;
  }
  double step = unit == Unit::kSeconds ? kTimeSteps.front() : 1;
  const auto below = [&] { return std::floor(-scale.first / step + 1e-9); };
  const auto above = [&] { return std::floor(scale.last / step + 1e-9); };
  while (below() + above() > std::max(intervals_max, 1)) {
    step = NextStep(step, unit);
  }
  for (int i = -static_cast<int>(below()); i <= static_cast<int>(above()); ++i) {
    scale.ticks.push_back({.value = i * step, .label = LabelOf(i * step, unit)});
  }
  return scale;
}

}  // namespace cachewarm::cli::report
