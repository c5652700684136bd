// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/starts/start_event.h"

#include <fmt/format.h>

#include <string>

#include "lib/api/reasons.h"
#include "operator/plan/decisions.h"
#include "operator/plan/effects.h"

namespace cachewarm::plan {

using api::StartResult;
using api::StartSample;

namespace {

// Returns " in 5.2 s"; "" if the start was not measured, because the container has no readiness
// probe.
std::string InSeconds(const StartSample& sample) {
  return sample.start_seconds > 0 ? fmt::format(" in {:.1f} s", sample.start_seconds)
                                  : std::string();
}

// Returns what the start saved or lost, and for how long the pod was held, as further clauses.
std::string Balance(const StartSample& sample) {
  std::string out;
  if (sample.saved_seconds > 0) {
    out = fmt::format("; saved {:.1f} s compared with a cold start", sample.saved_seconds);
  } else if (sample.saved_seconds < 0) {
    out = fmt::format("; lost {:.1f} s compared with a cold start", -sample.saved_seconds);
  }
  if (sample.hold_seconds > 0) {
    out += fmt::format(", {:.1f} s of holding the pod included", sample.hold_seconds);
  }
  return out;
}

// Returns the cause of a start that compiled, as a further sentence; `otherwise` if it is unknown.
std::string CauseOr(const StartSample& sample, std::string_view otherwise) {
  return ". " + (sample.cause.empty() ? std::string(otherwise) : "Cause: " + sample.cause);
}

struct StartReport {
  std::string_view reason;
  std::string note;
};

std::optional<StartReport> Report(const StartSample& sample) {
  const std::string took = InSeconds(sample);
  const std::string balance = Balance(sample);
  switch (sample.result) {
    case StartResult::kHit:
      return StartReport{
          api::reason::kStartedWarm,
          fmt::format("started warm{}: the engine compiled nothing{}", took, balance)};
    case StartResult::kPartial:
      return StartReport{
          api::reason::kStartedWarm,
          fmt::format("started warm{}: the engine used a part of the cache and compiled the rest{}",
                      took, balance) +
              (sample.cause.empty() ? "" : CauseOr(sample, ""))};
    case StartResult::kCold:
      return StartReport{
          api::reason::kStartedCold,
          fmt::format("started cold{}: its node had no bundle for it when the container started{}",
                      took, balance) +
              CauseOr(sample,
                      "Pods start warm as soon as condition Warm of the CacheWarmup is True.")};
    case StartResult::kMiss:
      return StartReport{
          api::reason::kCacheMissed,
          fmt::format("missed the cache: its node had the bundle, but the engine compiled "
                      "everything again and started{}{}",
                      took, balance) +
              CauseOr(sample,
                      "Compare image, arguments and environment with those of the builder: the "
                      "engine's keys contain a value that differs.")};
    case StartResult::kInert:
      return StartReport{
          api::reason::kCacheMissed,
          fmt::format("missed the cache: the engine started{} without reading it{}", took,
                      balance) +
              CauseOr(sample,
                      "Check whether a variable of the container or of its image names another "
                      "cache directory.")};
    case StartResult::kHollow:
      return StartReport{
          api::reason::kCacheMissed,
          fmt::format("missed the cache: the engine read its index, but built the native code "
                      "again and started{}{}",
                      took, balance) +
              CauseOr(sample,
                      "Check whether the compiler of the image differs from that of the builder.")};
    case StartResult::kBuilder:
    case StartResult::kUnknown:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<EventRequest> MakeStartEvent(const api::Pod& pod, const StartSample& sample) {
  std::optional<StartReport> report = Report(sample);
  if (!report) {
    return std::nullopt;
  }
  EventRequest event = MakePodEvent(pod, report->reason, TruncateMessage(std::move(report->note)));
  event.action = "Start";
  event.warning = report->reason == api::reason::kCacheMissed;
  return event;
}

}  // namespace cachewarm::plan
