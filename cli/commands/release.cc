// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>
#include <utility>

#include "cli/cluster/connection.h"
#include "cli/cluster/held_pods.h"
#include "cli/cluster/policy.h"
#include "cli/commands/commands.h"
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

// Prints a table row for each outcome and a summary, or one JSON object.
class Table {
 public:
  Table(Console& console, bool json) : console_(console), json_(json) {}

  void Add(const ReleaseOutcome& outcome) {
    ++counts_[outcome.result];
    if (outcome.result == ReleaseResult::kNotDue) {
      return;
    }
    if (json_) {
      rows_.push_back({{"namespace", outcome.ns},
                       {"pod", outcome.pod},
                       {"warmup", outcome.warmup},
                       {"heldSeconds", std::chrono::duration<double>(outcome.held).count()},
                       {"result", Name(outcome.result)},
                       {"message", outcome.message}});
      return;
    }
    if (std::exchange(empty_, false)) {
      console_.out << fmt::format(kRow, "RESULT", "HELD", "POD", "WARMUP");
    }
    const bool waited = outcome.result != ReleaseResult::kNotHeld;
    console_.out << fmt::format(kRow, Name(outcome.result),
                                waited ? FormatDuration(outcome.held) : "-",
                                outcome.ns + "/" + outcome.pod, outcome.warmup)
                 << std::flush;
    if (!outcome.message.empty()) {
      console_.err << fmt::format("cachewarm: {}/{}: {}\n", outcome.ns, outcome.pod,
                                  outcome.message);
    }
  }

  void End() {
    if (json_) {
      PrintJson(console_, {{"pods", rows_}, {"notDue", Count(ReleaseResult::kNotDue)}});
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
  static constexpr char kRow[] = "{:<14} {:<8} {:<56} {}\n";

  Console& console_;
  const bool json_;
  bool empty_ = true;
  std::map<ReleaseResult, int> counts_;
  codec::Json rows_ = codec::Json::array();
};

absl::StatusOr<ReleaseRequest> RequestOf(const Arguments& arguments) {
  ReleaseRequest request{.ns = {},
                         .names = arguments.positionals(),
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
  Table table(console, arguments.Has("json"));
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
    {.name = "json", .help = "print the result as a JSON object"},
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
          "  cachewarm release --all -A --remove-policy\n",
      .options = {},
      .groups = {kReleaseOptions, ClusterOptionList(), PodOptionList()},
      .run = Release};
}

}  // namespace cachewarm::cli
