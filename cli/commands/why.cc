// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>
#include <string_view>

#include "cli/cluster/connection.h"
#include "cli/cluster/explained_start.h"
#include "cli/commands/commands.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/request.h"

namespace cachewarm::cli {
namespace {

// An operand such as "pod/llama-7d9f-x2x5q".
struct Subject {
  bool is_pod = true;
  std::string name;
};

absl::StatusOr<Subject> SubjectOf(const std::string& operand) {
  const size_t slash = operand.find('/');
  const std::string_view kind = std::string_view(operand).substr(0, slash);
  const std::string name = slash == std::string::npos ? "" : operand.substr(slash + 1);
  const bool is_pod = kind == "pod" || kind == "pods" || kind == "po";
  const bool is_warmup = kind == "cachewarmup" || kind == "cachewarmups" || kind == "cw";
  if ((!is_pod && !is_warmup) || name.empty() || name.find('/') != std::string::npos) {
    return UsageError(
        fmt::format("\"{}\": expected pod/NAME or cachewarmup/NAME", operand.substr(0, 253)));
  }
  return Subject{.is_pod = is_pod, .name = name};
}

absl::StatusOr<StartExplanation> Explain(const Connection& connection, const Subject& subject,
                                         const std::stop_token& stop) {
  const kube::Resource& resource = subject.is_pod ? kube::kPods : kube::kCacheWarmups;
  auto object =
      connection.client->Do(kube::Get(resource, {.ns = connection.ns, .name = subject.name}), stop);
  if (absl::IsNotFound(object.status())) {
    return absl::NotFoundError(fmt::format("{} {}/{} does not exist",
                                           subject.is_pod ? "pod" : "cachewarmup", connection.ns,
                                           subject.name));
  }
  CW_RETURN_IF_ERROR(object.status());
  if (subject.is_pod) {
    return ExplainPod(*object);
  }
  CW_ASSIGN_OR_RETURN(const api::CacheWarmup warmup, api::DecodeCacheWarmup(*object));
  return ExplainLastMiss(warmup);
}

void Print(Console& console, const StartExplanation& start) {
  const std::string measured = start.start_seconds > 0
                                   ? fmt::format(", started in {:.1f} s, saved {:.1f} s",
                                                 start.start_seconds, start.saved_seconds)
                                   : "";
  console.out << fmt::format("pod {}/{}: {}{}\n{}\n", start.ns, start.pod,
                             start.result.empty() ? "not counted" : start.result, measured,
                             start.text);
}

absl::StatusOr<int> Why(const Arguments& arguments, Console& console) {
  CW_ASSIGN_OR_RETURN(const Subject subject, SubjectOf(arguments.positionals().front()));
  CW_ASSIGN_OR_RETURN(const Connection connection, Connect(arguments, console));
  CW_ASSIGN_OR_RETURN(const StartExplanation start, Explain(connection, subject, console.stop));
  if (arguments.Has("json")) {
    PrintJson(console, {{"namespace", start.ns},
                        {"pod", start.pod},
                        {"warmup", start.warmup},
                        {"result", start.result},
                        {"startSeconds", start.start_seconds},
                        {"savedSeconds", start.saved_seconds},
                        {"explanation", start.text}});
  } else {
    Print(console, start);
  }
  return kOk;
}

constexpr std::array<Option, 1> kWhyOptions = {
    {{.name = "json", .help = "print the result as a JSON object"}}};

}  // namespace

Verb WhyVerb() {
  return {
      .name = "why",
      .operands = "OBJECT",
      .summary = "Explain why a pod compiled instead of using its bundle",
      .text =
          "OBJECT is pod/NAME, or cachewarmup/NAME for the last start of that CacheWarmup that\n"
          "was no hit. The operator compares each start that compiled with the start of the pod\n"
          "that built the bundle: image, arguments, environment variables, GPU type, driver,\n"
          "CPU class, number of devices and mount path. The verb prints the difference that\n"
          "most likely changed the key of the engine's cache, and what to do. Values of\n"
          "arguments and variables are compared by keyed hashes and never shown.\n\n"
          "It needs only get on pods and cachewarmups.\n\n"
          "  cachewarm why pod/llama-7d9f-x2x5q -n team\n"
          "  cachewarm why cachewarmup/llama -n team\n",
      .options = {},
      .groups = {kWhyOptions, ClusterOptionList(), PodOptionList().first(1)},
      .run = Why};
}

}  // namespace cachewarm::cli
