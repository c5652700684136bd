// SPDX-License-Identifier: Apache-2.0
#include "lib/base/status.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "cli/cluster/connection.h"
#include "cli/cluster/status_objects.h"
#include "cli/commands/commands.h"
#include "cli/output.h"
#include "cli/status/engine_table.h"
#include "cli/status/progress.h"
#include "fmt/format.h"
#include "lib/codec/json_value.h"

namespace cachewarm::cli {
namespace {

using codec::Json;
using status::BundleProgress;
using status::State;

constexpr std::string_view kNothing = "-";

// Options and operands of one call.
struct StatusCall {
  std::string warmup;  // empty: all
  OutputFormat format = OutputFormat::kText;
  bool all_namespaces = false;
  bool watch = false;

  bool IsDocument() const { return format == OutputFormat::kJson || format == OutputFormat::kYaml; }
  bool IsWide() const { return format == OutputFormat::kWide; }
};

std::string OrNothing(std::string text) {
  return text.empty() ? std::string(kNothing) : std::move(text);
}

std::string DurationOrNothing(const std::optional<Duration>& duration) {
  return duration.has_value() ? FormatDuration(*duration) : std::string(kNothing);
}

// A row of a table that a watch prints again once `identity` has other `content`. The content has
// no times, which change by themselves.
struct KeyedRow {
  std::string identity;
  std::string content;
  Row row;
};

Cell ConditionCell(const api::CacheWarmup& warmup, std::string_view type) {
  const api::Condition* condition = api::FindCondition(warmup.status.conditions, type);
  if (condition == nullptr) {
    return {"Unknown", Colour::kYellow};
  }
  return {condition->status, condition->status == "True" ? Colour::kGreen : Colour::kYellow};
}

const api::Condition& ConditionOf(const api::CacheWarmup& warmup, std::string_view type) {
  static const api::Condition unknown{.reason = "", .message = "the operator has not reported yet"};
  const api::Condition* condition = api::FindCondition(warmup.status.conditions, type);
  return condition == nullptr ? unknown : *condition;
}

std::string ContentOf(const Row& row) {
  std::string content;
  for (const Cell& cell : row) {
    content += cell.text + "\n";
  }
  return content;
}

Row WarmupHeader(const StatusCall& call) {
  Row row = {{"NAME"}, {"TYPES"}, {"NODES"}, {"HIT"}, {"PARTIAL"}, {"SAVED"}, {"READY"}, {"WARM"}};
  if (call.all_namespaces) {
    row.insert(row.begin(), {"NAMESPACE"});
  }
  if (call.IsWide()) {
    row.insert(row.end(), {{"BUNDLES"}, {"REASON"}, {"MESSAGE"}});
  }
  return row;
}

KeyedRow WarmupRow(const api::CacheWarmup& warmup, const StatusCall& call) {
  const api::Summary& summary = warmup.status.summary;
  Row row = {{warmup.name},
             {OrNothing(summary.types)},
             {OrNothing(summary.nodes)},
             {OrNothing(summary.hit)},
             {OrNothing(summary.partial)},
             {OrNothing(summary.saved)},
             ConditionCell(warmup, "Ready"),
             ConditionCell(warmup, "Warm")};
  if (call.all_namespaces) {
    row.insert(row.begin(), {warmup.ns});
  }
  if (call.IsWide()) {
    const api::Condition& ready = ConditionOf(warmup, "Ready");
    const api::Condition& shown = ready.status == "True" ? ConditionOf(warmup, "Warm") : ready;
    row.insert(row.end(), {{fmt::format("{}", warmup.status.bundles.size())},
                           {OrNothing(shown.reason)},
                           {shown.message}});
  }
  return {.identity = warmup.ns + "/" + warmup.name, .content = ContentOf(row), .row = row};
}

Colour ColourOf(State state) {
  switch (state) {
    case State::kActive:
      return Colour::kGreen;
    case State::kFailed:
    case State::kBuildFailed:
      return Colour::kRed;
    default:
      return Colour::kYellow;
  }
}

std::string BytesOf(const BundleProgress& progress) {
  if (progress.bytes_total == 0) {
    return std::string(kNothing);
  }
  if (progress.state != State::kFetching) {
    return FormatBytes(progress.bytes_total);
  }
  return fmt::format("{} of {}, {} %", FormatBytes(progress.bytes_done),
                     FormatBytes(progress.bytes_total),
                     static_cast<int64_t>(100.0 * static_cast<double>(progress.bytes_done) /
                                          static_cast<double>(progress.bytes_total)));
}

std::string RateOf(const BundleProgress& progress) {
  return progress.bytes_per_second > 0
             ? FormatBytes(static_cast<int64_t>(progress.bytes_per_second)) + "/s"
             : std::string(kNothing);
}

Row ProgressHeader(const StatusCall& call) {
  Row row = {{"GPU TYPE"}, {"NODE"}, {"POD"},   {"STATE"}, {"BUNDLE"},
             {"BYTES"},    {"RATE"}, {"TAKEN"}, {"LEFT"}};
  if (call.IsWide()) {
    row.insert(row.end(), {{"CPU CLASS"}, {"KEY"}, {"REPORTED"}});
  }
  row.push_back({"MESSAGE"});
  return row;
}

KeyedRow ProgressRow(const BundleProgress& progress, const StatusCall& call) {
  const std::string digest = progress.bundle.ToString();
  Row row = {{OrNothing(progress.gpu_type)},
             {OrNothing(progress.node)},
             {OrNothing(progress.pod)},
             {std::string(Name(progress.state)), ColourOf(progress.state)},
             {OrNothing(call.IsWide() ? digest : progress.bundle.hex().substr(0, 12))},
             {BytesOf(progress)}};
  const std::string content = ContentOf(row) + progress.message;
  row.insert(row.end(), {{RateOf(progress)},
                         {DurationOrNothing(progress.taken)},
                         {DurationOrNothing(progress.left)}});
  if (call.IsWide()) {
    row.insert(row.end(),
               {{OrNothing(progress.cpu_class)},
                {OrNothing(progress.key.substr(0, 12))},
                {progress.reported.has_value() ? FormatTime(*progress.reported) : "never"}});
  }
  row.push_back({progress.message});
  return {.identity = fmt::format("{} {} {} {}", progress.gpu_type, progress.node, progress.pod,
                                  progress.bundle.hex()),
          .content = content,
          .row = std::move(row)};
}

std::string SummaryLines(const Console& console, const api::CacheWarmup& warmup) {
  std::string lines = fmt::format("{}/{}\n", warmup.ns, warmup.name);
  for (const char* type : {"Ready", "Warm"}) {
    const api::Condition& condition = ConditionOf(warmup, type);
    lines += fmt::format("{:<7} {}{}{}\n", type,
                         Painted(console, ConditionCell(warmup, type).colour, condition.status),
                         condition.reason.empty() ? "" : " " + OneLine(condition.reason),
                         condition.message.empty() ? "" : ": " + OneLine(condition.message));
  }
  const api::Starts& starts = warmup.status.starts;
  lines += fmt::format("{:<7} {} hit, {} partial, {} missed, {} without a cache; saved {}\n",
                       "Starts", starts.counts.hit, starts.counts.partial, starts.counts.miss,
                       starts.counts.cold, OrNothing(warmup.status.summary.saved));
  const auto median = [](double seconds) {
    return seconds <= 0 ? std::string(kNothing)
                        : FormatDuration(std::chrono::duration_cast<Duration>(
                              std::chrono::duration<double>(seconds)));
  };
  return lines + fmt::format("{:<7} {} cold, {} warm\n", "Median",
                             median(starts.cold_median_seconds),
                             median(starts.warm_median_seconds));
}

Json ConditionJson(const api::Condition& condition) {
  return {
      {"status", condition.status}, {"reason", condition.reason}, {"message", condition.message}};
}

Json SecondsJson(const std::optional<Duration>& duration) {
  return duration.has_value() ? Json(std::chrono::duration<double>(*duration).count()) : Json();
}

Json ToJson(const BundleProgress& progress) {
  return {{"gpuType", progress.gpu_type},
          {"cpuClass", progress.cpu_class},
          {"node", progress.node},
          {"pod", progress.pod},
          {"state", Name(progress.state)},
          {"key", progress.key},
          {"bundle", progress.bundle.ToString()},
          {"bytesDone", progress.bytes_done},
          {"bytesTotal", progress.bytes_total},
          {"bytesPerSecond", static_cast<int64_t>(progress.bytes_per_second)},
          {"takenSeconds", SecondsJson(progress.taken)},
          {"leftSeconds", SecondsJson(progress.left)},
          {"reportedTime",
           progress.reported.has_value() ? Json(FormatTime(*progress.reported)) : Json()},
          {"message", progress.message}};
}

Json ToJson(const api::CacheWarmup& warmup, const std::vector<BundleProgress>& progress) {
  const api::Starts& starts = warmup.status.starts;
  Json counts = Json::object();
  for (const api::StartResult result : api::kStartResults) {
    counts[std::string(Name(result))] = CountOf(starts.counts, result);
  }
  Json rows = Json::array();
  for (const BundleProgress& each : progress) {
    rows.push_back(ToJson(each));
  }
  return {{"namespace", warmup.ns},
          {"name", warmup.name},
          {"ready", ConditionJson(ConditionOf(warmup, "Ready"))},
          {"warm", ConditionJson(ConditionOf(warmup, "Warm"))},
          {"types", warmup.status.summary.types},
          {"nodes", warmup.status.summary.nodes},
          {"starts", std::move(counts)},
          {"savedSeconds", starts.saved_seconds},
          {"lostSeconds", starts.lost_seconds},
          {"coldMedianSeconds", starts.cold_median_seconds},
          {"warmMedianSeconds", starts.warm_median_seconds},
          {"engine", status::EngineJson(starts)},
          {"progress", std::move(rows)}};
}

// Prints the objects of one call, and in a watch the rows that changed since.
class StatusPrinter {
 public:
  StatusPrinter(const StatusCall& call, Console& console) : call_(call), console_(console) {}

  void PrintFirst(const StatusObjects& objects) {
    PrintNotes(objects.notes);
    if (call_.IsDocument()) {
      PrintJsonOrYaml(objects);
      return;
    }
    if (call_.format == OutputFormat::kName) {
      PrintChanges(objects);
      return;
    }
    if (!call_.warmup.empty()) {
      console_.out << SummaryLines(console_, objects.warmups.front()) << '\n';
      PrintEngines(objects.warmups.front().status.starts);
    }
    const std::vector<KeyedRow> rows = Rows(objects);
    std::vector<Row> table = {call_.warmup.empty() ? WarmupHeader(call_) : ProgressHeader(call_)};
    for (const KeyedRow& each : rows) {
      table.push_back(each.row);
      printed_[each.identity] = each.content;
    }
    widths_ = WidthsOf(table);
    if (!rows.empty() || call_.watch) {
      console_.out << FormatTable(console_, table) << std::flush;
    } else {
      console_.err << (call_.warmup.empty() ? "no CacheWarmup found\n" : "no node uses it yet\n");
    }
  }

  void PrintChanges(const StatusObjects& objects) {
    std::set<std::string> present;
    for (const KeyedRow& each : Rows(objects)) {
      present.insert(each.identity);
      std::string& content = printed_[each.identity];
      if (std::exchange(content, each.content) != each.content) {
        console_.out << FormatRow(console_, each.row, widths_) << std::flush;
      }
    }
    // A row that was removed is printed again if it returns.
    std::erase_if(printed_, [&](const auto& each) { return !present.contains(each.first); });
    PrintNotes(objects.notes);
  }

 private:
  void PrintEngines(const api::Starts& starts) const {
    if (const std::vector<Row> table = status::EngineTable(starts); !table.empty()) {
      console_.out << FormatTable(console_, table) << '\n';
    }
  }

  std::vector<KeyedRow> Rows(const StatusObjects& objects) const {
    std::vector<KeyedRow> rows;
    if (call_.format == OutputFormat::kName) {
      for (const api::CacheWarmup& warmup : objects.warmups) {
        const std::string name = "cachewarmup.cachewarm.io/" + warmup.name;
        rows.push_back({.identity = warmup.ns + "/" + name,
                        .content = warmup.resource_version,
                        .row = {{name}}});
      }
    } else if (call_.warmup.empty()) {
      for (const api::CacheWarmup& warmup : objects.warmups) {
        rows.push_back(WarmupRow(warmup, call_));
      }
    } else {
      for (const BundleProgress& each :
           status::ProgressOf(objects.warmups.front(), objects.nodes, console_.clock.Now())) {
        rows.push_back(ProgressRow(each, call_));
      }
    }
    return rows;
  }

  void PrintJsonOrYaml(const StatusObjects& objects) const {
    Json warmups = Json::array();
    for (const api::CacheWarmup& warmup : objects.warmups) {
      warmups.push_back(
          ToJson(warmup, status::ProgressOf(warmup, objects.nodes, console_.clock.Now())));
    }
    PrintDocument(console_, call_.format, {{"warmups", std::move(warmups)}});
  }

  void PrintNotes(const std::vector<std::string>& notes) const {
    for (const std::string& note : notes) {
      console_.err << "note: " << note << '\n';
    }
  }

  const StatusCall& call_;
  Console& console_;
  std::vector<size_t> widths_;
  std::map<std::string, std::string> printed_;  // contents by identity
};

absl::StatusOr<StatusCall> CallOf(const Arguments& arguments) {
  StatusCall call{.format = OutputFormatOf(arguments),
                  .all_namespaces = arguments.Has("all-namespaces"),
                  .watch = arguments.Has("watch")};
  if (!arguments.positionals().empty()) {
    call.warmup = arguments.positionals().front();
    // As "cachewarm status -o name" and kubectl print it.
    call.warmup = call.warmup.substr(call.warmup.find('/') + 1);
  }
  if (!call.warmup.empty() && call.all_namespaces) {
    return UsageError("--all-namespaces: not allowed with a WARMUP; use --namespace");
  }
  if (call.watch && call.IsDocument()) {
    return UsageError(
        "--watch: only with a table; \"kubectl get cachewarmups -o json --watch\" prints objects");
  }
  return call;
}

absl::StatusOr<int> Status(const Arguments& arguments, Console& console) {
  CW_ASSIGN_OR_RETURN(const StatusCall call, CallOf(arguments));
  CW_ASSIGN_OR_RETURN(const Connection connection, Connect(arguments, console));
  StatusQuery query{.ns = connection.ns,
                    .warmup = call.warmup,
                    .with_nodes = call.IsDocument() || !call.warmup.empty()};
  CW_ASSIGN_OR_RETURN(const StatusObjects objects,
                      ReadStatusObjects(*connection.client, console.clock, query, console.stop));
  StatusPrinter printer(call, console);
  printer.PrintFirst(objects);
  if (!call.watch) {
    return kOk;
  }
  query.with_nodes = query.with_nodes && objects.notes.empty();
  const StatusWatcher watcher{
      .on_change = [&](const StatusObjects& changed) -> absl::Status {
        if (!call.warmup.empty() && changed.warmups.empty()) {
          return absl::NotFoundError(
              fmt::format("CacheWarmup {}/{} was deleted", query.ns, call.warmup));
        }
        printer.PrintChanges(changed);
        return absl::OkStatus();
      },
      .on_note = [&console](const std::string& note) { console.err << "note: " << note << '\n'; }};
  CW_RETURN_IF_ERROR(
      WatchStatusObjects(*connection.client, console.clock, query, watcher, console.stop));
  return kInterrupted;
}

constexpr std::array<Option, 2> kStatusOptions = {{
    kListOutput,
    {.name = "watch",
     .help = "after the table, print each row again that changes, until interrupted",
     .letter = 'w'},
}};

}  // namespace

Verb StatusVerb() {
  return {
      .name = "status",
      .operands = "[WARMUP]",
      .summary = "Show CacheWarmups, running builds and fetches",
      .text =
          "Without WARMUP lists the CacheWarmups of the namespace. With WARMUP shows one of them:\n"
          "its conditions, the results of its starts, its builds, and every node that its pods "
          "may\n"
          "use with the state of the bundle there. A running fetch is shown with its rate so far\n"
          "and the time left at that rate, a running compile with the time left until the median\n"
          "of the cold starts. Agents report the bytes of a fetch every few seconds; a node whose\n"
          "agent has not reported for longer is marked. TAKEN counts from the start of the\n"
          "builder's container.\n\n"
          "States of builds: Starting, Compiling, Settling (the engine is ready, its files still\n"
          "change), Publishing, Proving, BuildFailed. States of nodes: NoBundle, Waiting,\n"
          "Fetching, Active, Failed.\n\n"
          "Needs get, list and watch on cachewarmups in the namespace, and list and watch on\n"
          "nodecaches; without the latter, nodes are not shown.\n\n"
          "  cachewarm status -A\n"
          "  cachewarm status llama -n models --watch\n"
          "  cachewarm status llama -n models -o json\n\n"
          "Exit codes: 0 success, 1 failure, 2 usage error, 4 no such CacheWarmup, or it was\n"
          "deleted during a watch, 130 interrupted, which is how a watch ends.\n",
      .options = {},
      .groups = {kStatusOptions, ClusterOptionList(), PodOptionList()},
      .run = Status,
      .names = "status -o name"};
}

}  // namespace cachewarm::cli
