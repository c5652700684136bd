// SPDX-License-Identifier: Apache-2.0
#include "cli/report/starts.h"

#include <algorithm>
#include <array>

#include "cli/report/charts.h"
#include "cli/report/html.h"
#include "cli/report/text.h"
#include "fmt/format.h"

namespace cachewarm::cli::report {
namespace {

constexpr size_t kPanelsMax = 6;
constexpr size_t kMedianRowsMax = 12;

using api::StartResult;

struct ResultMeaning {
  StartResult result;
  Mark mark;
  std::string_view meaning;
};

// In the order of the chart and of the columns.
constexpr std::array<ResultMeaning, 8> kMeanings = {{
    {StartResult::kHit, Mark::kWarm, "The engine used the cache and compiled nothing."},
    {StartResult::kPartial, Mark::kPartial,
     "The engine used a part of the cache and compiled the rest."},
    {StartResult::kCold, Mark::kCold,
     "The pod had no cache: it was not injected, or its node had no bundle yet."},
    {StartResult::kMiss, Mark::kMissed,
     "The pod had a cache, but the engine compiled everything. Compare its image, arguments and "
     "variables with those of the builder."},
    {StartResult::kHollow, Mark::kMissed,
     "The engine read the index of the cache and rebuilt the code. Compare the engine versions."},
    {StartResult::kInert, Mark::kMissed,
     "The engine never read the cache. Check that nothing overrides the variables of its cache "
     "directory."},
    {StartResult::kBuilder, Mark::kNeutral,
     "The pod compiled for all others. Such a start does not count for the share of hits."},
    {StartResult::kUnknown, Mark::kNeutral,
     "The node has no evidence about the start. It does not count for the share of hits."},
}};

const ResultMeaning& MeaningOf(StartResult result) {
  return *std::find_if(kMeanings.begin(), kMeanings.end(),
                       [result](const ResultMeaning& each) { return each.result == result; });
}

int64_t AllStarts(const api::StartCounts& counts) {
  return CountedStarts(counts) + counts.builder + counts.unknown;
}

double MedianOf(std::vector<double> sorted) {
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// The table under a chart of starts.
std::string RecentTable(const WarmupRow& warmup) {
  Table table{.caption = fmt::format("{}: the latest starts by result", warmup.name),
              .columns = {{"Result"},
                          {"Starts", true},
                          {"Shortest", true},
                          {"Median", true},
                          {"Longest", true}},
              .rows = {}};
  for (const ResultMeaning& each : kMeanings) {
    std::vector<double> seconds;
    for (const RecentStart& start : warmup.recent) {
      if (start.result == each.result) {
        seconds.push_back(start.seconds);
      }
    }
    if (!seconds.empty()) {
      std::sort(seconds.begin(), seconds.end());
      table.rows.push_back({std::string(Name(each.result)),
                            FormatCount(static_cast<int64_t>(seconds.size())),
                            FormatSeconds(seconds.front()), FormatSeconds(MedianOf(seconds)),
                            FormatSeconds(seconds.back())});
    }
  }
  return Render(table);
}

// "cold 41 s, warm 5.5 s"; a median that is not known is left out.
std::string MediansText(const WarmupRow& warmup) {
  std::string text;
  if (warmup.cold_median_seconds > 0) {
    text += fmt::format("cold {}", FormatSeconds(warmup.cold_median_seconds));
  }
  if (warmup.warm_median_seconds > 0) {
    text += fmt::format("{}warm {}", text.empty() ? "" : ", ",
                        FormatSeconds(warmup.warm_median_seconds));
  }
  return text.empty() ? "no median yet" : "medians: " + text;
}

std::string Panel(const WarmupRow& warmup, size_t number) {
  DotChart chart{
      .id = fmt::format("starts-{}", number),
      .title = fmt::format("Start times of {}", warmup.name),
      .description = fmt::format(
          "{} from container start to Ready, oldest first; {}",
          FormatNumberOf(static_cast<int64_t>(warmup.recent.size()), "start"), MediansText(warmup)),
      .dots = {},
      .lines = {}};
  for (const RecentStart& start : warmup.recent) {
    chart.dots.push_back({.value = start.seconds, .mark = MeaningOf(start.result).mark});
  }
  if (warmup.cold_median_seconds > 0) {
    chart.lines.push_back({.value = warmup.cold_median_seconds, .mark = Mark::kCold});
  }
  if (warmup.warm_median_seconds > 0) {
    chart.lines.push_back({.value = warmup.warm_median_seconds, .mark = Mark::kWarm});
  }
  const auto shown = static_cast<int64_t>(warmup.recent.size());
  return fmt::format(
      "<figure>\n<figcaption><strong>{}</strong><span>{}; {}</span></figcaption>\n{}{}</figure>\n",
      Shown(warmup.name, 60),
      shown < AllStarts(warmup.counts)
          ? fmt::format("latest {} of {}", FormatCount(shown),
                        FormatNumberOf(AllStarts(warmup.counts), "start"))
          : FormatNumberOf(shown, "start"),
      MediansText(warmup), Render(chart), Details("Table", RecentTable(warmup)));
}

std::string Legend() {
  constexpr std::array<std::pair<Mark, std::string_view>, 5> kEntries = {
      {{Mark::kWarm, "hit"},
       {Mark::kPartial, "partial hit"},
       {Mark::kCold, "cold"},
       {Mark::kMissed, "miss, hollow or inert"},
       {Mark::kNeutral, "builder or unknown"}}};
  std::string html = "<ul class=\"legend\">\n";
  for (const auto& [mark, text] : kEntries) {
    html += fmt::format("<li>{}{}</li>\n", Symbol(mark), text);
  }
  return html + "<li><span class=\"dash\" aria-hidden=\"true\"></span>median</li>\n</ul>\n";
}

std::string ResultsTable(const Report& report) {
  std::vector<WarmupRow> rows = report.warmups;
  std::stable_sort(rows.begin(), rows.end(), [](const WarmupRow& a, const WarmupRow& b) {
    return StartsWithoutUse(a.counts) > StartsWithoutUse(b.counts);
  });
  auto [shown, omitted] = EndsOf(rows, kTableRowsMax, 0);
  Table table{.caption = "Starts of each warmup by result, most starts without the cache first",
              .columns = {{"Warmup"}},
              .rows = {},
              .omitted = omitted,
              .noun = "warmup"};
  for (const ResultMeaning& each : kMeanings) {
    table.columns.push_back({Name(each.result), true});
  }
  table.columns.push_back({"hit share", true});
  table.columns.push_back({"partial share", true});
  for (const WarmupRow& warmup : shown) {
    std::vector<std::string> row = {warmup.name};
    for (const ResultMeaning& each : kMeanings) {
      row.push_back(FormatCount(CountOf(warmup.counts, each.result)));
    }
    const int64_t counted = CountedStarts(warmup.counts);
    row.push_back(FormatShare(warmup.counts.hit, counted));
    row.push_back(FormatShare(warmup.counts.partial, counted));
    table.rows.push_back(std::move(row));
  }
  return Render(table);
}

}  // namespace

std::string StartsSection(const Report& report) {
  std::vector<WarmupRow> rows;
  for (const WarmupRow& warmup : report.warmups) {
    if (!warmup.recent.empty()) {
      rows.push_back(warmup);
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const WarmupRow& a, const WarmupRow& b) {
    return AllStarts(a.counts) > AllStarts(b.counts);
  });
  const auto [shown, omitted] = EndsOf(rows, kPanelsMax, 0);
  Section section{.id = "starts",
                  .title = "Starts over time",
                  .lead = "No start has been counted yet.",
                  .html = {}};
  if (!shown.empty()) {
    section.lead = fmt::format(
        "Time from the start of the container to Ready. A CacheWarmup keeps its latest 64 starts "
        "in their order, without times; earlier ones are only counted.{}",
        omitted > 0 ? fmt::format(" Shown are the {} warmups with the most starts, of {}.",
                                  shown.size(), FormatCount(static_cast<int64_t>(rows.size())))
                    : "");
    section.html = Legend() + "<div class=\"cards\">\n";
    for (size_t i = 0; i < shown.size(); ++i) {
      section.html += Panel(shown[i], i + 1);
    }
    section.html += "</div>\n";
  }
  return Render(section);
}

std::string MediansSection(const Report& report) {
  std::vector<WarmupRow> rows;
  for (const WarmupRow& warmup : report.warmups) {
    if (warmup.cold_median_seconds > 0 && warmup.warm_median_seconds > 0) {
      rows.push_back(warmup);
    }
  }
  Section section{.id = "medians",
                  .title = "Cold against warm",
                  .lead = "No warmup has both cold starts and hits yet.",
                  .html = {}};
  if (rows.empty()) {
    return Render(section);
  }
  const auto [shown, omitted] = EndsOf(rows, kMedianRowsMax, 0);
  section.lead = fmt::format(
      "Median start without the cache (upper bar) and with a full hit (lower bar); the number is "
      "cold divided by warm.{}",
      omitted > 0 ? fmt::format(" Shown are the {} warmups with the largest saving, of {}.",
                                shown.size(), FormatCount(static_cast<int64_t>(rows.size())))
                  : "");
  BarChart chart{.id = "medians-chart",
                 .title = "Median cold and warm start of each warmup",
                 .description = section.lead,
                 .unit = Unit::kSeconds,
                 .rows = {}};
  const auto factor = [](const WarmupRow& warmup) {
    return fmt::format("{:.1f}\u00D7", warmup.cold_median_seconds / warmup.warm_median_seconds);
  };
  for (const WarmupRow& warmup : shown) {
    chart.rows.push_back({.label = warmup.name,
                          .value = factor(warmup),
                          .bars = {{warmup.cold_median_seconds, Mark::kCold},
                                   {warmup.warm_median_seconds, Mark::kWarm}}});
  }
  const auto [listed, unlisted] = EndsOf(rows, kTableRowsMax, 0);
  Table table{.caption = "Median starts of each warmup; faster: cold divided by warm",
              .columns = {{"Warmup"},
                          {"Cold", true},
                          {"Warm", true},
                          {"Faster", true},
                          {"Held (median)", true}},
              .rows = {},
              .omitted = unlisted,
              .noun = "warmup"};
  for (const WarmupRow& warmup : listed) {
    table.rows.push_back({warmup.name, FormatSeconds(warmup.cold_median_seconds),
                          FormatSeconds(warmup.warm_median_seconds), factor(warmup),
                          FormatSeconds(warmup.hold_median_seconds)});
  }
  section.html = Render(chart) + Details("Table", Render(table));
  return Render(section);
}

std::string ResultsSection(const Report& report) {
  const api::StartCounts& counts = report.total.counts;
  const int64_t counted = CountedStarts(counts);
  Section section{.id = "results",
                  .title = "Starts without a full hit, by cause",
                  .lead = "No start has been counted yet.",
                  .html = {}};
  if (AllStarts(counts) == 0) {
    return Render(section);
  }
  section.lead =
      fmt::format("Of {} that {}, {} used the cache in full, {} in part and {} not at all.",
                  FormatNumberOf(counted, "start"), counted == 1 ? "counts" : "count",
                  FormatShare(counts.hit, counted), FormatShare(counts.partial, counted),
                  FormatShare(StartsWithoutUse(counts), counted));
  BarChart chart{.id = "results-chart",
                 .title = "Starts without a full hit, by result",
                 .description = section.lead,
                 .unit = Unit::kCount,
                 .rows = {}};
  Table meanings{
      .caption = "Results", .columns = {{"Result"}, {"Starts", true}, {"Meaning"}}, .rows = {}};
  for (const ResultMeaning& each : kMeanings) {
    const int64_t count = CountOf(counts, each.result);
    const std::string name(Name(each.result));
    if (each.result != StartResult::kHit) {
      chart.rows.push_back({.label = name,
                            .value = FormatCount(count),
                            .bars = {{static_cast<double>(count), each.mark}}});
    }
    meanings.rows.push_back({name, FormatCount(count), std::string(each.meaning)});
  }
  section.html = (AllStarts(counts) > counts.hit ? Render(chart) : "") +
                 Details("What the results mean", Render(meanings)) +
                 Details("Table by warmup", ResultsTable(report));
  return Render(section);
}

}  // namespace cachewarm::cli::report
