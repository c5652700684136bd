// SPDX-License-Identifier: Apache-2.0
#include "cli/report/costs.h"

#include <algorithm>
#include <utility>

#include "cli/console.h"
#include "cli/report/charts.h"
#include "cli/report/html.h"
#include "cli/report/text.h"
#include "fmt/format.h"

namespace cachewarm::cli::report {
namespace {

// The chart shows warmups of both ends, so that those that lost time are never hidden.
constexpr size_t kMostSavedMax = 9;
constexpr size_t kLeastSavedMax = 3;
constexpr size_t kLeastSavedListed = 20;

Bar NetBar(double seconds) {
  return {.value = seconds, .mark = seconds < 0 ? Mark::kCold : Mark::kWarm};
}

BarRow GpuTimeRow(std::string label, double seconds, Mark mark) {
  return {.label = std::move(label), .value = FormatSeconds(seconds), .bars = {{seconds, mark}}};
}

BarRow OtherWarmups(const Report& report, size_t count) {
  double seconds = 0;
  const size_t first = kMostSavedMax;
  for (size_t i = first; i < first + count; ++i) {
    seconds += report.warmups[i].NetSeconds();
  }
  return {.label = fmt::format("{} together",
                               FormatNumberOf(static_cast<int64_t>(count), "other warmup")),
          .value = FormatSeconds(seconds),
          .bars = {NetBar(seconds)}};
}

std::string SavingsTable(const Report& report) {
  const auto [listed, omitted] =
      EndsOf(report.warmups, kTableRowsMax - kLeastSavedListed, kLeastSavedListed);
  Table table{.caption = "Start time and GPU time that each warmup saved and lost",
              .columns = {{"Warmup"},
                          {"Net", true},
                          {"Saved", true},
                          {"Lost", true},
                          {"GPU time saved", true},
                          {"GPU time lost", true},
                          {"Counted since"}},
              .rows = {},
              .omitted = omitted,
              .noun = "warmup"};
  for (const WarmupRow& warmup : listed) {
    table.rows.push_back({warmup.name, FormatSeconds(warmup.NetSeconds()),
                          FormatSeconds(warmup.saved_seconds), FormatSeconds(warmup.lost_seconds),
                          FormatSeconds(warmup.saved_gpu_seconds),
                          FormatSeconds(warmup.lost_gpu_seconds),
                          warmup.counting_started_time == WallTime{}
                              ? "-"
                              : FormatTime(warmup.counting_started_time).substr(0, 10)});
  }
  return Render(table);
}

struct Holds {
  int64_t starts = 0;
  double seconds = 0;
  double longest = 0;
};

Holds HoldsOf(const Report& report) {
  Holds holds;
  for (const WarmupRow& warmup : report.warmups) {
    for (const RecentStart& start : warmup.recent) {
      ++holds.starts;
      holds.seconds += start.hold_seconds;
      holds.longest = std::max(holds.longest, start.hold_seconds);
    }
  }
  return holds;
}

std::string CostsTable(const Report& report) {
  const WarmupRow& total = report.total;
  const Holds holds = HoldsOf(report);
  int64_t bundles = 0;
  int64_t bundle_bytes = 0;
  for (const GpuTypeRow& type : report.gpu_types) {
    bundles += type.bundles;
    bundle_bytes += type.bundle_bytes;
  }
  Table table{.caption = "What the cache cost",
              .columns = {{"Cost"}, {"Amount", true}, {"Counted"}},
              .rows = {}};
  table.rows.push_back({"GPU time of builder Jobs", FormatSeconds(total.builder_gpu_seconds),
                        "from container start to the end of the build; a pod of the workload that "
                        "builds costs nothing extra"});
  table.rows.push_back({"GPU time lost", FormatSeconds(total.lost_gpu_seconds),
                        "starts slower than the median cold start, time held included"});
  table.rows.push_back({"Start time lost", FormatSeconds(total.lost_seconds),
                        "the same starts, not multiplied by their GPUs"});
  table.rows.push_back(
      {"Time that pods were held", FormatSeconds(holds.seconds),
       fmt::format("only the latest {}; the longest was held for {}",
                   FormatNumberOf(holds.starts, "start"), FormatSeconds(holds.longest))});
  table.rows.push_back(
      {"Compiled after Ready", FormatCount(total.late_compiles),
       "cache entries that running pods compiled; no bundle has them, so that each "
       "node compiles them again"});
  table.rows.push_back(
      {"Bytes on nodes", report.nodes_missing.empty() ? FormatBytes(report.node_bytes) : "-",
       report.nodes_missing.empty()
           ? fmt::format("all caches of {}",
                         FormatNumberOf(static_cast<int64_t>(report.nodes.size()), "node"))
           : "the nodes could not be read"});
  table.rows.push_back(
      {"Bytes of bundles", FormatBytes(bundle_bytes),
       fmt::format("{} in use, compressed, each counted once", FormatNumberOf(bundles, "bundle"))});
  return Render(table);
}

}  // namespace

std::string SavingsSection(const Report& report) {
  Section section{.id = "savings",
                  .title = "Saved time by warmup",
                  .lead = "There is no CacheWarmup.",
                  .html = {}};
  if (report.warmups.empty()) {
    return Render(section);
  }
  section.lead =
      "Start time saved against the median cold start, less time lost and time held. Orange bars "
      "at the left of zero lost time.";
  BarChart chart{.id = "savings-chart",
                 .title = "Net start time saved by each warmup",
                 .description = section.lead,
                 .unit = Unit::kSeconds,
                 .rows = {}};
  const auto [shown, omitted] = EndsOf(report.warmups, kMostSavedMax, kLeastSavedMax);
  for (const WarmupRow& warmup : shown) {
    if (omitted > 0 && chart.rows.size() == kMostSavedMax) {
      chart.rows.push_back(OtherWarmups(report, omitted));
    }
    chart.rows.push_back({.label = warmup.name,
                          .value = FormatSeconds(warmup.NetSeconds()),
                          .bars = {NetBar(warmup.NetSeconds())}});
  }
  const bool is_nothing =
      std::all_of(report.warmups.begin(), report.warmups.end(),
                  [](const WarmupRow& warmup) { return warmup.NetSeconds() == 0; });
  if (is_nothing) {
    section.lead = "No start time has been saved or lost yet.";
  } else {
    section.html = Render(chart);
  }
  section.html += Details("Table", SavingsTable(report));
  return Render(section);
}

std::string CostsSection(const Report& report) {
  const WarmupRow& total = report.total;
  const double net = total.saved_gpu_seconds - total.lost_gpu_seconds - total.builder_gpu_seconds;
  Section section{.id = "costs",
                  .title = "What it cost",
                  .lead = "No GPU time has been saved, lost or spent on builds yet.",
                  .html = {}};
  if (total.saved_gpu_seconds + total.lost_gpu_seconds + total.builder_gpu_seconds > 0) {
    section.lead = fmt::format("GPU time saved, less GPU time lost and spent on builds: {}.",
                               FormatSeconds(net));
    section.html = Render(BarChart{
        .id = "costs-chart",
        .title = "GPU time saved, lost and spent on builds",
        .description = section.lead,
        .unit = Unit::kSeconds,
        .rows = {GpuTimeRow("saved by warm starts", total.saved_gpu_seconds, Mark::kWarm),
                 GpuTimeRow("lost by slow starts", total.lost_gpu_seconds, Mark::kCold),
                 GpuTimeRow("spent on builder Jobs", total.builder_gpu_seconds, Mark::kCold)}});
  }
  section.html += Details("Table", CostsTable(report));
  return Render(section);
}

}  // namespace cachewarm::cli::report
