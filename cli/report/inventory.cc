// SPDX-License-Identifier: Apache-2.0
#include "cli/report/inventory.h"

#include <algorithm>

#include "cli/console.h"
#include "cli/report/charts.h"
#include "cli/report/html.h"
#include "cli/report/text.h"
#include "fmt/format.h"

namespace cachewarm::cli::report {
namespace {

constexpr size_t kGpuTypeRowsMax = 12;
constexpr size_t kNodeRowsMax = 10;
constexpr size_t kProblemsMax = 20;

std::string CountOfList(const auto& list, std::string_view noun) {
  return FormatNumberOf(static_cast<int64_t>(list.size()), noun);
}

std::string TimeOrDash(WallTime time) {
  return time == WallTime{} ? "-" : FormatTime(time);
}

std::string BundlesTable(const Report& report) {
  const auto [listed, omitted] = EndsOf(report.bundles, kTableRowsMax, 0);
  Table table{.caption = "Bundles, largest first",
              .columns = {{"Bundle"},
                          {"Warmup"},
                          {"GPU type"},
                          {"Size", true},
                          {"Files", true},
                          {"Nodes ready", true},
                          {"Nodes failed", true},
                          {"Published"},
                          {"Image"}},
              .rows = {},
              .omitted = omitted,
              .noun = "bundle"};
  for (const BundleRow& bundle : listed) {
    table.rows.push_back({bundle.digest.Short(), bundle.warmup, bundle.gpu_type,
                          FormatBytes(bundle.bytes), FormatCount(bundle.files),
                          fmt::format("{} of {}", bundle.nodes_ready, bundle.nodes_desired),
                          FormatCount(bundle.nodes_failed), TimeOrDash(bundle.published_time),
                          bundle.image});
  }
  return Render(table);
}

std::string GpuTypesTable(const Report& report) {
  const auto [listed, omitted] = EndsOf(report.gpu_types, kTableRowsMax, 0);
  Table table{.caption = "GPU types",
              .columns = {{"GPU type"},
                          {"Bundles", true},
                          {"Size", true},
                          {"Nodes", true},
                          {"GPUs", true},
                          {"Starts that count", true},
                          {"Hit share", true},
                          {"Partial share", true}},
              .rows = {},
              .omitted = omitted,
              .noun = "GPU type"};
  for (const GpuTypeRow& type : listed) {
    const int64_t counted = CountedStarts(type.counts);
    table.rows.push_back({type.gpu_type, FormatCount(type.bundles), FormatBytes(type.bundle_bytes),
                          FormatCount(type.nodes), FormatCount(type.devices), FormatCount(counted),
                          FormatShare(type.counts.hit, counted),
                          FormatShare(type.counts.partial, counted)});
  }
  return Render(table);
}

std::string NodesTable(const Report& report) {
  const auto [listed, omitted] = EndsOf(report.nodes, kTableRowsMax, 0);
  Table table{.caption = "Nodes, most bytes used first",
              .columns = {{"Node"},
                          {"GPU type"},
                          {"GPUs", true},
                          {"Bundles active", true},
                          {"Used", true},
                          {"Limit", true},
                          {"Free", true},
                          {"Last report", true}},
              .rows = {},
              .omitted = omitted,
              .noun = "node"};
  for (const NodeRow& node : listed) {
    table.rows.push_back(
        {node.name, node.gpu_type.empty() ? "not known" : node.gpu_type, FormatCount(node.devices),
         fmt::format("{} of {}", node.bundles_active, node.bundles_desired),
         FormatBytes(node.used_bytes),
         node.limit_bytes > 0 ? FormatBytes(node.limit_bytes) : "none",
         FormatBytes(node.free_bytes),
         node.heartbeat == WallTime{}
             ? "never"
             : FormatDuration(std::max(report.time - node.heartbeat, Duration(0))) + " ago"});
  }
  return Render(table);
}

}  // namespace

std::string BundlesSection(const Report& report) {
  std::vector<GpuTypeRow> types;
  for (const GpuTypeRow& type : report.gpu_types) {
    if (type.bundles > 0) {
      types.push_back(type);
    }
  }
  Section section{.id = "bundles",
                  .title = "Bundles by GPU type",
                  .lead = "No bundle has been published yet.",
                  .html = {}};
  if (!types.empty()) {
    std::stable_sort(types.begin(), types.end(), [](const GpuTypeRow& a, const GpuTypeRow& b) {
      return a.bundle_bytes > b.bundle_bytes;
    });
    const auto [shown, omitted] = EndsOf(types, kGpuTypeRowsMax, 0);
    section.lead = fmt::format("Compressed size of the bundles in use, each counted once.{}",
                               omitted > 0 ? fmt::format(" Shown are {} of {}.", shown.size(),
                                                         CountOfList(types, "GPU type"))
                                           : "");
    BarChart chart{.id = "bundles-chart",
                   .title = "Size of the bundles of each GPU type",
                   .description = section.lead,
                   .unit = Unit::kBytes,
                   .rows = {}};
    for (const GpuTypeRow& type : shown) {
      chart.rows.push_back({.label = type.gpu_type,
                            .value = fmt::format("{} in {}", FormatBytes(type.bundle_bytes),
                                                 FormatCount(type.bundles)),
                            .bars = {{static_cast<double>(type.bundle_bytes), Mark::kWarm}}});
    }
    section.html = Render(chart);
  }
  if (!report.gpu_types.empty()) {
    section.html += Details("Table by GPU type", GpuTypesTable(report));
  }
  if (!report.bundles.empty()) {
    section.html += Details("Table by bundle", BundlesTable(report));
  }
  return Render(section);
}

std::string NodesSection(const Report& report) {
  Section section{.id = "nodes",
                  .title = "Nodes",
                  .lead = "No node has an agent, or no workload of the report runs on one.",
                  .html = {}};
  if (!report.nodes_missing.empty()) {
    section.lead = fmt::format("The nodes could not be read: {}", report.nodes_missing);
  }
  if (report.nodes.empty()) {
    return Render(section);
  }
  const auto lacking =
      std::count_if(report.nodes.begin(), report.nodes.end(),
                    [](const NodeRow& node) { return node.bundles_active < node.bundles_desired; });
  const auto [shown, omitted] = EndsOf(report.nodes, kNodeRowsMax, 0);
  section.lead = fmt::format(
      "{} {} {} of caches{}. {}{}", CountOfList(report.nodes, "node"),
      report.nodes.size() == 1 ? "has" : "have", FormatBytes(report.node_bytes),
      report.ns.empty() ? "" : ", those of other namespaces included",
      lacking == 0 ? "Each has all the bundles that it should have."
                   : fmt::format("{} without all the bundles that they should have.",
                                 FormatNumberOf(lacking, "node") + (lacking == 1 ? " is" : " are")),
      omitted > 0 ? fmt::format(" Shown are the {} with the most bytes.", shown.size()) : "");
  BarChart chart{.id = "nodes-chart",
                 .title = "Bytes of caches on each node",
                 .description = section.lead,
                 .unit = Unit::kBytes,
                 .rows = {}};
  for (const NodeRow& node : shown) {
    chart.rows.push_back({.label = node.name,
                          .value = FormatBytes(node.used_bytes),
                          .bars = {{static_cast<double>(node.used_bytes), Mark::kWarm}}});
  }
  section.html = Render(chart) + Details("Table", NodesTable(report));
  return Render(section);
}

std::string ProblemsSection(const Report& report) {
  if (report.problems.empty() && report.unreadable.empty()) {
    return "";
  }
  std::vector<ProblemRow> problems = report.unreadable;
  problems.insert(problems.end(), report.problems.begin(), report.problems.end());
  const auto [listed, omitted] = EndsOf(problems, kProblemsMax, 0);
  Table table{.caption = "Conditions that need attention",
              .columns = {{"Object"}, {"Reason"}, {"Message"}},
              .rows = {},
              .omitted = omitted,
              .noun = "problem"};
  for (const ProblemRow& problem : listed) {
    table.rows.push_back({problem.object, problem.reason, problem.message});
  }
  const Section section{
      .id = "problems",
      .title = "Needs attention",
      .lead =
          fmt::format("{} from the conditions of the objects.{}", CountOfList(problems, "problem"),
                      report.unreadable.empty()
                          ? ""
                          : " Objects that could not be read are not part of this report."),
      .html = Render(table)};
  return Render(section);
}

}  // namespace cachewarm::cli::report
