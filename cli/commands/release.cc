// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>
#include <utility>

#include "cli/cluster/connection.h"
#include "cli/cluster/held_pods.h"
#include "cli/cluster/policy.h"
#include "cli/commands/commands.h"
#include "cli/output.h"
#include "fmt/format.h"
#include "lib/api/reasons.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/gate/core/held.h"

namespace cachewarm::cli {
namespace {

constexpr int64_t kMaxHoldSeconds = 60;  // default of spec.gate.maxHoldSeconds
constexpr int64_t kMaxHoldSecondsMax =
    std::chrono::duration_cast<std::chrono::seconds>(gate::kMaxHold).count();

Colour ColourOf(ReleaseResult result) {
  switch (result) {
    case ReleaseResult::kReleased:
      return Colour::kGreen;
    case ReleaseResult::kFailed:
      return Colour::kRed;
    default:
      return Colour::kNone;
  }
}

// Prints a row for each outcome and a summary, or one document.
class Table {
 public:
  Table(Console& console, OutputFormat format) : console_(console), format_(format) {}

  void Add(const ReleaseOutcome& outcome) {
    ++counts_[outcome.result];
    if (outcome.result == ReleaseResult::kNotDue) {
      return;
    }
    if (IsDocument()) {
      rows_.push_back({{"namespace", outcome.ns},
                       {"pod", outcome.pod},
                       {"warmup", outcome.warmup},
                       {"heldSeconds", std::chrono::duration<double>(outcome.held).count()},
                       {"result", Name(outcome.result)},
                       {"message", outcome.message}});
      return;
    }
    if (format_ == OutputFormat::kName) {
      PrintName(outcome);
    } else {
      PrintRow(outcome);
    }
    if (!outcome.message.empty()) {
      console_.err << fmt::format("cachewarm: {}/{}: {}\n", outcome.ns, outcome.pod,
                                  OneLine(outcome.message));
    }
  }

  void End() {
    if (IsDocument()) {
      PrintDocument(console_, format_,
                    {{"pods", rows_}, {"notDue", Count(ReleaseResult::kNotDue)}});
      return;
    }
    if (format_ == OutputFormat::kName) {
      return;
    }
    const int failed = Count(ReleaseResult::kFailed);
    const int waiting = Count(ReleaseResult::kNotDue);
    const int would = Count(ReleaseResult::kWouldRelease);
    console_.err << fmt::format("{} {} pods{}{}\n", would > 0 ? "would release" : "released",
                                would > 0 ? would : Count(ReleaseResult::kReleased),
                                failed > 0 ? fmt::format(", {} failed", failed) : "",
                                waiting > 0 ? fmt::format(", {} not due yet", waiting) : "");
  }

  int Count(ReleaseResult result) const {
    const auto found = counts_.find(result);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  bool IsDocument() const {
    return format_ == OutputFormat::kJson || format_ == OutputFormat::kYaml;
  }

  // Prints the names of released pods only, for the use in another command.
  void PrintName(const ReleaseOutcome& outcome) {
    if (outcome.result == ReleaseResult::kReleased ||
        outcome.result == ReleaseResult::kWouldRelease) {
      console_.out << "pod/" << outcome.pod << '\n' << std::flush;
    }
  }

  void PrintRow(const ReleaseOutcome& outcome) {
    // Rows are printed as the pods are released, so that the widths cannot depend on all names.
    static const std::vector<size_t> widths = {13, 7, 50, 20};
    const bool is_wide = format_ == OutputFormat::kWide;
    const auto print = [&](Row row) {
      row.resize(is_wide ? 5 : 4);
      console_.out << FormatRow(console_, row, widths) << std::flush;
    };
    if (std::exchange(empty_, false)) {
      print({{"RESULT"}, {"HELD"}, {"POD"}, {"WARMUP"}, {"MESSAGE"}});
    }
    const bool waited = outcome.result != ReleaseResult::kNotHeld;
    print({{std::string(Name(outcome.result)), ColourOf(outcome.result)},
           {waited ? FormatDuration(outcome.held) : "-"},
           {outcome.ns + "/" + outcome.pod},
           {outcome.warmup},
           {outcome.message}});
  }

  Console& console_;
  const OutputFormat format_;
  bool empty_ = true;
  std::map<ReleaseResult, int> counts_;
  codec::Json rows_ = codec::Json::array();
};

// Returns the names of the pods, which may be written as "pod/NAME", as kubectl prints them.
std::vector<std::string> NamesOf(std::vector<std::string> operands) {
  for (std::string& operand : operands) {
    constexpr std::string_view kKind = "pod/";
    operand.erase(0, operand.starts_with(kKind) ? kKind.size() : 0);
  }
  return operands;
}

absl::StatusOr<ReleaseRequest> RequestOf(const Arguments& arguments) {
  ReleaseRequest request{.ns = {},
                         .names = NamesOf(arguments.positionals()),
                         .past_deadline = {},
                         .dry_run = arguments.Has("dry-run"),
                         .reason = api::reason::kReleasedManually};
  if (request.names.empty() != arguments.Has("all")) {
    return UsageError("expected names of pods or --all, not both");
  }
  if (!request.names.empty() && arguments.Has("all-namespaces")) {
    return UsageError("--all-namespaces: not allowed with names of pods; use --namespace");
  }
  if (arguments.Has("past-deadline")) {
    request.past_deadline = std::chrono::seconds(arguments.Number("max-hold", kMaxHoldSeconds));
    request.reason = api::reason::kReleasedAtDeadline;
  }
  if (arguments.Has("remove-policy")) {
    if (!arguments.Has("all") || !arguments.Has("all-namespaces") || request.dry_run ||
        request.past_deadline.has_value()) {
      return UsageError(
          "--remove-policy: requires --all --all-namespaces, and excludes --dry-run and "
          "--past-deadline");
    }
    request.reason = api::reason::kReleasedHoldingDisabled;
  }
  return request;
}

absl::StatusOr<int> Release(const Arguments& arguments, Console& console) {
  CW_ASSIGN_OR_RETURN(ReleaseRequest request, RequestOf(arguments));
  CW_ASSIGN_OR_RETURN(const Connection connection, Connect(arguments, console));
  request.ns = connection.ns;
  Table table(console, OutputFormatOf(arguments));
  const ReleaseDependencies dependencies{
      .client = *connection.client,
      .clock = console.clock,
      .on_outcome = [&table](const ReleaseOutcome& outcome) { table.Add(outcome); }};
  const absl::Status status = arguments.Has("remove-policy")
                                  ? RemovePolicyAndRelease(dependencies, request, console.stop)
                                  : ReleaseHeld(dependencies, request, console.stop);
  table.End();
  CW_RETURN_IF_ERROR(status);
  return table.Count(ReleaseResult::kFailed) > 0 ? kFailed : kOk;
}

constexpr std::array<Option, 6> kReleaseOptions = {{
    {.name = "all", .help = "release all held pods of the namespace, or of the cluster with -A"},
    {.name = "past-deadline", .help = "release only overdue pods"},
    {.name = "max-hold",
     .value = "SECONDS",
     .help = "seconds after creation at which a pod without a held-until annotation is overdue "
             "(default 60)",
     .range = Range{0, kMaxHoldSecondsMax}},
    {.name = "dry-run", .help = "list the pods that would be released; change nothing"},
    {.name = "remove-policy",
     .help = "also delete the admission policy, so that new pods are no longer held (use before "
             "uninstalling)"},
    kListOutput,
}};

}  // namespace

Verb ReleaseVerb() {
  return {
      .name = "release",
      .operands = "[POD...]",
      .summary = "Release pods that are held for their cache; they start cold",
      .text =
          "A held pod has the scheduling gate cachewarm.io/wait-for-cache, which the operator\n"
          "removes when the cache is ready or at the deadline of the pod. This verb removes the\n"
          "gate without the operator. It needs only get, list and patch on pods. Other\n"
          "scheduling gates are not changed.\n\n"
          "The deadline of a pod is the annotation cachewarm.io/held-until, else --max-hold\n"
          "seconds after its creation, but at most one hour after its creation. A pod is\n"
          "overdue 5 seconds after its deadline: until then it is left to the operator, which\n"
          "knows the best node for the pod.\n\n"
          "  cachewarm release llama-7d9f-x2x5q -n team\n"
          "  cachewarm release --all -A --dry-run\n\n"
          "The CronJob cachewarm-release runs this every minute:\n\n"
          "  cachewarm release --all -A --past-deadline\n\n"
          "Before uninstalling with kubectl delete -f install.yaml:\n\n"
          "  cachewarm release --all -A --remove-policy\n\n"
          "Exit codes: 0 success, 1 a pod could not be released or the cluster not be read, 2 "
          "usage\n"
          "error, 4 pod not found, 130 interrupted.\n",
      .options = {},
      .groups = {kReleaseOptions, ClusterOptionList(), PodOptionList()},
      .run = Release,
      .names = "release --all --dry-run -o name"};
}

}  // namespace cachewarm::cli
