// SPDX-License-Identifier: Apache-2.0
#include "cli/report/charts.h"

#include <algorithm>

#include "cli/report/text.h"
#include "fmt/format.h"

namespace cachewarm::cli::report {
namespace {

// Columns of text that fit into 260 pixels, the width of a chart on a phone of 320 pixels.
constexpr size_t kLabelColumns = 33;
constexpr size_t kValueColumns = 13;
// Part of the width for bars, in percent; the rest is for their values.
constexpr double kBarsPercent = 64;
// Least length of the bar of a value other than zero, in percent.
constexpr double kBarPercentMin = 0.4;
constexpr int kBarIntervals = 3;

// Heights in pixels.
constexpr int kLabelHeight = 18;
constexpr int kBarHeight = 11;
constexpr int kBarGap = 2;
constexpr int kRowGap = 13;
constexpr int kAxisHeight = 22;

// Left and right end of the dots in percent; the labels of the axis are at the left of them.
constexpr double kDotsLeft = 17;
constexpr double kDotsRight = 98;
constexpr int kDotIntervals = 4;
constexpr int kDotsTop = 12;
constexpr int kDotsHeight = 140;
constexpr int kDotsBottom = 28;

std::string OpenTag(std::string_view id, std::string_view title, std::string_view description,
                    int height) {
  return fmt::format(
      "<svg class=\"chart\" role=\"img\" width=\"100%\" height=\"{1}\" "
      "aria-labelledby=\"{0}-title {0}-desc\">\n"
      "<title id=\"{0}-title\">{2}</title>\n<desc id=\"{0}-desc\">{3}</desc>\n",
      id, height, Shown(title, 200), Shown(description, 500));
}

int HeightOf(const BarRow& row) {
  return kLabelHeight + static_cast<int>(row.bars.size()) * (kBarHeight + kBarGap) - kBarGap;
}

double BarPosition(const Scale& scale, double value) {
  return kBarsPercent * scale.Position(value);
}

std::string RenderAxis(const Scale& scale, int bottom) {
  std::string svg;
  for (const Tick& tick : scale.ticks) {
    const double x = BarPosition(scale, tick.value);
    svg += fmt::format("<line class=\"{}\" x1=\"{:.2f}%\" x2=\"{:.2f}%\" y1=\"{}\" y2=\"{}\"/>\n",
                       tick.value == 0 ? "zero" : "grid", x, x, kLabelHeight, bottom);
    // A centred label at the left end would leave the chart.
    svg += fmt::format("<text class=\"tick{}\" x=\"{:.2f}%\" y=\"{}\">{}</text>\n",
                       x < 6 ? "" : " middle", x, bottom + 15, Shown(tick.label, 10));
  }
  return svg;
}

std::string RenderRow(const BarRow& row, const Scale& scale, int top) {
  std::string svg = fmt::format("<text class=\"label\" x=\"0\" y=\"{}\">{}</text>\n", top + 13,
                                Shown(row.label, kLabelColumns));
  int y = top + kLabelHeight;
  for (const Bar& bar : row.bars) {
    const double from = BarPosition(scale, std::min(bar.value, 0.0));
    const double to = BarPosition(scale, std::max(bar.value, 0.0));
    const double width = bar.value == 0 ? 0 : std::max(to - from, kBarPercentMin);
    svg +=
        fmt::format("<rect class=\"{}\" x=\"{:.2f}%\" y=\"{}\" width=\"{:.2f}%\" height=\"{}\"/>\n",
                    ClassOf(bar.mark), bar.value < 0 ? to - width : from, y, width, kBarHeight);
    y += kBarHeight + kBarGap;
  }
  const int middle = top + kLabelHeight + (HeightOf(row) - kLabelHeight) / 2;
  svg += fmt::format("<text class=\"value end\" x=\"100%\" y=\"{}\">{}</text>\n", middle + 4,
                     Shown(row.value, kValueColumns));
  return svg;
}

// Returns the mark, centred at x and y. Marks differ in colour and in shape.
std::string RenderDot(Mark mark, std::string_view x, double y) {
  const bool is_round = mark == Mark::kWarm || mark == Mark::kPartial;
  return is_round ? fmt::format("<circle class=\"{}\" cx=\"{}\" cy=\"{:.1f}\" r=\"3.2\"/>",
                                ClassOf(mark), x, y)
                  : fmt::format(
                        "<rect class=\"{}\" x=\"{}\" y=\"{:.1f}\" width=\"6\" height=\"6\" "
                        "transform=\"translate(-3)\"/>",
                        ClassOf(mark), x, y - 3);
}

double DotY(const Scale& scale, double value) {
  return kDotsTop + kDotsHeight * (1 - scale.Position(value));
}

}  // namespace

std::string_view ClassOf(Mark mark) {
  switch (mark) {
    case Mark::kWarm:
      return "warm";
    case Mark::kPartial:
      return "partial";
    case Mark::kCold:
      return "cold";
    case Mark::kMissed:
      return "missed";
    case Mark::kNeutral:
      break;
  }
  return "neutral";
}

std::string Render(const BarChart& chart) {
  double lowest = 0;
  double highest = 0;
  int height = 0;
  for (const BarRow& row : chart.rows) {
    for (const Bar& bar : row.bars) {
      lowest = std::min(lowest, bar.value);
      highest = std::max(highest, bar.value);
    }
    height += HeightOf(row) + kRowGap;
  }
  const Scale scale = MakeScale(lowest, highest, chart.unit, kBarIntervals);
  std::string svg = OpenTag(chart.id, chart.title, chart.description, height + kAxisHeight);
  svg += RenderAxis(scale, height);
  int top = 0;
  for (const BarRow& row : chart.rows) {
    svg += RenderRow(row, scale, top);
    top += HeightOf(row) + kRowGap;
  }
  return svg + "</svg>\n";
}

std::string Render(const DotChart& chart) {
  double highest = 0;
  for (const Dot& dot : chart.dots) {
    highest = std::max(highest, dot.value);
  }
  for (const Line& line : chart.lines) {
    highest = std::max(highest, line.value);
  }
  // Leave room for half a mark above the highest value.
  const Scale scale = MakeScale(0, highest * 1.05, chart.unit, kDotIntervals);
  std::string svg =
      OpenTag(chart.id, chart.title, chart.description, kDotsTop + kDotsHeight + kDotsBottom);
  for (const Tick& tick : scale.ticks) {
    const double y = DotY(scale, tick.value);
    svg += fmt::format(
        "<line class=\"{}\" x1=\"{}%\" x2=\"100%\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n"
        "<text class=\"tick end\" x=\"{}%\" y=\"{:.1f}\">{}</text>\n",
        tick.value == 0 ? "zero" : "grid", kDotsLeft - 2, y, y, kDotsLeft - 4, y + 4,
        Shown(tick.label, 7));
  }
  for (const Line& line : chart.lines) {
    const double y = DotY(scale, line.value);
    svg += fmt::format(
        "<line class=\"median {}\" x1=\"{}%\" x2=\"100%\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
        ClassOf(line.mark), kDotsLeft - 2, y, y);
  }
  const double step =
      (kDotsRight - kDotsLeft) / static_cast<double>(std::max<size_t>(chart.dots.size() - 1, 1));
  double x = chart.dots.size() == 1 ? (kDotsLeft + kDotsRight) / 2 : kDotsLeft;
  for (const Dot& dot : chart.dots) {
    svg += RenderDot(dot.mark, fmt::format("{:.2f}%", x), DotY(scale, dot.value)) + "\n";
    x += step;
  }
  const int bottom = kDotsTop + kDotsHeight + 18;
  svg += fmt::format(
      "<text class=\"tick\" x=\"{}%\" y=\"{}\">oldest</text>\n"
      "<text class=\"tick end\" x=\"100%\" y=\"{}\">newest</text>\n",
      kDotsLeft - 2, bottom, bottom);
  return svg + "</svg>\n";
}

std::string Symbol(Mark mark) {
  return fmt::format(
      "<svg class=\"symbol\" width=\"10\" height=\"10\" aria-hidden=\"true\">{}</svg>",
      RenderDot(mark, "5", 5));
}

}  // namespace cachewarm::cli::report
