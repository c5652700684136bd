// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>
#include <string_view>

#include "cli/cluster/connection.h"
#include "cli/cluster/explained_start.h"
#include "cli/cluster/named_object.h"
#include "cli/commands/commands.h"
#include "cli/output.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/request.h"

namespace cachewarm::cli {
namespace {

// Parses an operand such as "pod/llama-7d9f-x2x5q".
absl::StatusOr<NamedObject> SubjectOf(const std::string& operand) {
  auto subject = ParseNamedObject(operand);
  if (!subject.ok() || (subject->resource.plural != kube::kPods.plural &&
                        subject->resource.plural != kube::kCacheWarmups.plural)) {
    return UsageError(
        fmt::format("\"{}\": expected pod/NAME or cachewarmup/NAME", operand.substr(0, 253)));
  }
  return subject;
}

absl::StatusOr<StartExplanation> Explain(const Connection& connection, const NamedObject& subject,
                                         const std::stop_token& stop) {
  const bool is_pod = subject.resource.plural == kube::kPods.plural;
  auto object = connection.client->Do(
      kube::Get(subject.resource, {.ns = connection.ns, .name = subject.name}), stop);
  if (absl::IsNotFound(object.status())) {
    return absl::NotFoundError(fmt::format(
        "{} {}/{} does not exist", is_pod ? "pod" : "cachewarmup", connection.ns, subject.name));
  }
  CW_RETURN_IF_ERROR(object.status());
  if (is_pod) {
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
  CW_ASSIGN_OR_RETURN(const NamedObject subject, SubjectOf(arguments.positionals().front()));
  CW_ASSIGN_OR_RETURN(const Connection connection, Connect(arguments, console));
  CW_ASSIGN_OR_RETURN(const StartExplanation start, Explain(connection, subject, console.stop));
  const OutputFormat format = OutputFormatOf(arguments);
  if (format == OutputFormat::kText) {
    Print(console, start);
  } else {
    PrintDocument(console, format,
                  {{"namespace", start.ns},
                   {"pod", start.pod},
                   {"warmup", start.warmup},
                   {"result", start.result},
                   {"startSeconds", start.start_seconds},
                   {"savedSeconds", start.saved_seconds},
                   {"explanation", start.text}});
  }
  return kOk;
}

constexpr std::array<Option, 1> kWhyOptions = {kDocumentOutput};

}  // namespace

Verb WhyVerb() {
  return {
      .name = "why",
      .operands = "OBJECT",
      .summary = "Explain why a pod compiled instead of using its bundle",
      .text =
          "OBJECT is pod/NAME, or cachewarmup/NAME for the last start of that CacheWarmup that\n"
          "was not a hit. The operator compares each start that compiled with the start of the\n"
          "pod that built the bundle: image, arguments, environment variables, GPU type, driver,\n"
          "CPU class, number of devices and mount path. The verb prints the difference that\n"
          "most likely changed the key of the engine's cache, and what to do. Values of\n"
          "arguments and variables are compared by keyed hashes and never shown.\n\n"
          "The verb needs only the right to get pods and cachewarmups.\n\n"
          "  cachewarm why pod/llama-7d9f-x2x5q -n team\n"
          "  cachewarm why cachewarmup/llama -n team\n",
      .options = {},
      .groups = {kWhyOptions, ClusterOptionList(), NamespaceOptionList()},
      .run = Why};
}

}  // namespace cachewarm::cli
