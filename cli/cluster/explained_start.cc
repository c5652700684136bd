// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/explained_start.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/output.h"
#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/object.h"

namespace cachewarm::cli {
namespace {

using api::StartResult;
using codec::Json;

// The operator writes less than 4 KiB.
constexpr codec::JsonLimits kAnnotationLimits{.bytes_max = 16'384, .depth_max = 4};

// Returns the sentence about a result that needs no cause.
std::string_view SentenceOf(std::string_view result) {
  static constexpr std::array<std::pair<StartResult, std::string_view>, 8> kSentences = {
      {{StartResult::kBuilder, "The pod was the builder: it compiled for the other pods."},
       {StartResult::kCold, "The pod had no bundle to use."},
       {StartResult::kHit, "The pod found all compiled code and compiled nothing."},
       {StartResult::kPartial, "The pod used a part of the bundle and compiled the rest."},
       {StartResult::kMiss, "The pod compiled everything, although the bundle was active."},
       {StartResult::kInert, "The engine did not read the mounted cache."},
       {StartResult::kHollow,
        "The engine found the entries of the bundle but compiled the native code again."},
       {StartResult::kUnknown,
        "The use of the cache could not be observed: a container restarted, the agent was not "
        "running, or it lost file events."}}};
  for (const auto& [each, sentence] : kSentences) {
    if (api::Name(each) == result) {
      return sentence;
    }
  }
  return "";
}

bool NeedsCause(std::string_view result) {
  return result == api::Name(StartResult::kMiss) || result == api::Name(StartResult::kPartial) ||
         result == api::Name(StartResult::kInert) || result == api::Name(StartResult::kHollow);
}

std::string TextOf(std::string_view result, const std::string& cause) {
  std::string sentence(SentenceOf(result));
  if (!cause.empty()) {
    return fmt::format("{}\nCause: {}", sentence, cause);
  }
  if (NeedsCause(result)) {
    return sentence +
           "\nThe operator recorded no cause: it is older than this verb, or cannot use the Secret "
           "cachewarm-salt in its namespace (see its log).";
  }
  return sentence;
}

double NumberIn(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

bool HasGate(const Json& pod) {
  const Json* gates = codec::At(pod, {"spec", "schedulingGates"});
  return gates != nullptr && gates->is_array() &&
         std::any_of(gates->begin(), gates->end(), [](const Json& gate) {
           return codec::TextAt(gate, {"name"}) == api::kSchedulingGate;
         });
}

std::string WhyNotCounted(const Json& pod, const std::string& warmup) {
  if (HasGate(pod)) {
    const std::string until =
        codec::TextAt(pod, {"metadata", "annotations", api::kHeldUntilAnnotation});
    return fmt::format(
        "The pod is held for its cache{} and has not started. \"cachewarm release\" "
        "starts it cold.",
        until.empty() ? "" : fmt::format(" until {} at the latest", until));
  }
  if (warmup.empty()) {
    return "The pod is not injected: no CacheWarmup selected it when it was created. \"kubectl get "
           "cachewarmups\" shows whether one is Ready.";
  }
  return "The first start of the pod is not counted yet. The operator counts it within 90 s after "
         "the pod is Ready.";
}

}  // namespace

absl::StatusOr<StartExplanation> ExplainPod(const Json& pod) {
  const kube::ObjectName name = kube::NameOf(pod);
  StartExplanation out{.ns = name.ns,
                       .pod = name.name,
                       .warmup = std::string(api::WarmupNameIn(codec::TextAt(
                           pod, {"metadata", "annotations", api::kWarmupAnnotation}))),
                       .result = "",
                       .text = ""};
  const std::string annotation =
      codec::TextAt(pod, {"metadata", "annotations", api::kStartAnnotation});
  if (annotation.empty()) {
    out.text = OneLine(WhyNotCounted(pod, out.warmup));
    return out;
  }
  const auto start = codec::ParseJson(annotation, kAnnotationLimits);
  if (!start.ok() || !start->is_object() || SentenceOf(codec::TextAt(*start, {"result"})).empty()) {
    return absl::InvalidArgumentError(
        fmt::format("pod {}/{}: annotation {} is not what the operator writes", out.ns, out.pod,
                    api::kStartAnnotation));
  }
  out.result = codec::TextAt(*start, {"result"});
  out.start_seconds = NumberIn(*start, "startSeconds");
  out.saved_seconds = NumberIn(*start, "savedSeconds");
  const std::string skipped = codec::TextAt(*start, {"skipReason"});
  const std::string cause = OneLine(skipped.empty() ? codec::TextAt(*start, {"cause"}) : skipped);
  out.text = TextOf(out.result, cause);
  return out;
}

absl::StatusOr<StartExplanation> ExplainLastMiss(const api::CacheWarmup& warmup) {
  for (auto at = warmup.status.starts.recent.rbegin(); at != warmup.status.starts.recent.rend();
       ++at) {
    if (at->result == StartResult::kHit || at->result == StartResult::kBuilder ||
        at->result == StartResult::kUnknown) {
      continue;
    }
    const std::string result(api::Name(at->result));
    return StartExplanation{.ns = warmup.ns,
                            .pod = OneLine(at->pod),
                            .warmup = warmup.name,
                            .result = result,
                            .start_seconds = at->start_seconds,
                            .saved_seconds = at->saved_seconds,
                            .text = TextOf(result, OneLine(at->cause))};
  }
  return absl::NotFoundError(fmt::format(
      "cachewarmup {}/{}: none of the last {} starts compiled what a bundle could have saved",
      warmup.ns, warmup.name, warmup.status.starts.recent.size()));
}

}  // namespace cachewarm::cli
