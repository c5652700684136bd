// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/cluster/connection.h"
#include "cli/cluster/list_objects.h"
#include "cli/commands/commands.h"
#include "cli/report/model.h"
#include "cli/report/page.h"
#include "cli/report/text.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fs/dir.h"
#include "lib/fs/file.h"
#include "lib/kube/core/resource.h"

namespace cachewarm::cli {
namespace {

constexpr mode_t kReportMode = 0644;
// More than the part of a page that identifies it as a report.
constexpr size_t kReportStartBytes = 4096;

// The file for the page. Without `parent`, the page goes to standard output.
struct ReportTarget {
  std::optional<fs::Dir> parent;
  std::string name;
};

// Returns an error if `name` exists and is neither an earlier report nor an empty file.
absl::Status CheckReplaceable(const fs::Dir& parent, const std::string& name) {
  const auto stat = parent.Stat(name);
  if (absl::IsNotFound(stat.status())) {
    return absl::OkStatus();
  }
  CW_RETURN_IF_ERROR(stat.status());
  if (stat->type != fs::FileType::kFile) {
    return absl::FailedPreconditionError(
        "is not a regular file; use -o - to write to standard output");
  }
  CW_ASSIGN_OR_RETURN(const fs::Fd file, parent.OpenFile(name));
  std::string start(kReportStartBytes, '\0');
  CW_ASSIGN_OR_RETURN(const size_t bytes, fs::ReadAt(file, 0, start.data(), start.size()));
  if (bytes > 0 && !report::IsReportPage(std::string_view(start).substr(0, bytes))) {
    return absl::FailedPreconditionError(
        "exists and is not a report; choose another file, or replace it with --force");
  }
  return absl::OkStatus();
}

absl::StatusOr<ReportTarget> ReportTargetOf(const Arguments& arguments) {
  const std::string output = arguments.Value("output");
  if (output.empty()) {
    return UsageError("--output: required; the file for the report, or - for standard output");
  }
  if (output == "-") {
    return ReportTarget{};
  }
  const std::filesystem::path path = std::filesystem::absolute(output).lexically_normal();
  auto parent = fs::Dir::Open(path.parent_path().string());
  if (!parent.ok()) {
    return Annotate(parent.status(), "--output");
  }
  ReportTarget target{.parent = *std::move(parent), .name = path.filename().string()};
  if (target.name.empty()) {
    return UsageError(fmt::format("--output: {} names a directory; give a file", output));
  }
  if (!arguments.Has("force")) {
    CW_RETURN_IF_ERROR(
        Annotate(CheckReplaceable(*target.parent, target.name), "--output: " + output));
  }
  return target;
}

absl::StatusOr<report::Report> ReadReport(const Connection& connection, Console& console) {
  report::Collector collector(connection.ns);
  const ListedObjects warmups{.on_object =
                                  [&](const codec::Json& object) {
                                    collector.AddWarmup(object);
                                    return absl::OkStatus();
                                  },
                              .on_restart = {}};
  const ListedObjects node_caches{.on_object =
                                      [&](const codec::Json& object) {
                                        collector.AddNode(object);
                                        return absl::OkStatus();
                                      },
                                  .on_restart = {}};
  CW_RETURN_IF_ERROR(ForEachObject(*connection.client, kube::kCacheWarmups, connection.ns,
                                   console.clock, warmups, console.stop));
  const absl::Status nodes = ForEachObject(*connection.client, kube::kNodeCaches, "", console.clock,
                                           node_caches, console.stop);
  // NodeCaches belong to the cluster: a user with rights in one namespace often may not read them.
  if (absl::IsPermissionDenied(nodes)) {
    collector.SetNodesMissing(std::string(Message(nodes)));
  } else {
    CW_RETURN_IF_ERROR(nodes);
  }
  return collector.Finish(console.clock.Now(), CACHEWARM_VERSION);
}

absl::StatusOr<int> WriteReport(const Arguments& arguments, Console& console) {
  // Before the cluster is read, so that a wrong option is reported at once.
  CW_ASSIGN_OR_RETURN(const ReportTarget target, ReportTargetOf(arguments));
  CW_ASSIGN_OR_RETURN(const Connection connection, Connect(arguments, console));
  CW_ASSIGN_OR_RETURN(const report::Report report, ReadReport(connection, console));
  const std::string page = report::RenderPage(report);
  if (!target.parent.has_value()) {
    console.out << page;
  } else {
    CW_RETURN_IF_ERROR(
        Annotate(fs::WriteFileAtomic(*target.parent, target.name, page, kReportMode), "--output"));
    console.out << arguments.Value("output") << '\n';
  }
  const auto number_of = [](const auto& list, std::string_view noun) {
    return report::FormatNumberOf(static_cast<int64_t>(list.size()), noun);
  };
  console.err << fmt::format("reported {} and {}, {}\n", number_of(report.warmups, "CacheWarmup"),
                             number_of(report.nodes, "node"),
                             FormatBytes(static_cast<int64_t>(page.size())));
  if (!report.unreadable.empty()) {
    console.err << fmt::format("{} could not be read; the report names {}\n",
                               number_of(report.unreadable, "object"),
                               report.unreadable.size() == 1 ? "it" : "them");
  }
  if (!report.nodes_missing.empty()) {
    console.err << fmt::format("the report has no nodes: {}\n", report.nodes_missing);
  }
  return kOk;
}

constexpr std::array<Option, 2> kReportOptions = {{
    {.name = "output",
     .value = "FILE",
     .help = "file to write, or - for standard output; an earlier report is replaced (required)",
     .letter = 'o'},
    {.name = "force", .help = "also replace a file that is not a report"},
}};

}  // namespace

Verb ReportVerb() {
  return {
      .name = "report",
      .operands = "",
      .summary = "Write an HTML page about starts, saved time, bundles and costs",
      .text =
          "Writes one HTML file that needs no network: starts cold against warm, time saved by\n"
          "each warmup, starts that did not use the cache and why, what builds, holds and disks\n"
          "cost, and the bundles and nodes. The page has light and dark colours and fits a "
          "phone.\n\n"
          "All numbers come from the status of CacheWarmups and NodeCaches. A CacheWarmup keeps\n"
          "its latest 64 starts one by one, and totals of all starts. The verb needs list on\n"
          "cachewarmups, and on nodecaches for the part about nodes. It changes nothing in the\n"
          "cluster.\n\n"
          "  cachewarm report -o report.html\n"
          "  cachewarm report -A -o report.html\n"
          "  cachewarm report -n models -o - | gzip > report.html.gz\n",
      .options = {},
      .groups = {kReportOptions, ClusterOptionList(), PodOptionList()},
      .run = WriteReport};
}

}  // namespace cachewarm::cli
