// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "lib/api/reasons.h"
#include "lib/fingerprint/key.h"
#include "operator/plan/capturing/ranks.h"
#include "operator/plan/capturing/site.h"
#include "operator/plan/decisions.h"
#include "operator/plan/gates/groups.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderState;
using api::BuilderStatus;
using api::CaptureState;
using api::CaptureStatus;

namespace {

struct Failure {
  std::string_view reason;
  std::string message;
};

std::optional<Failure> IsLost(const Site& site, const BuilderStatus& builder) {
  if (site.pod == nullptr || site.pod->pod->node != builder.node) {
    return Failure{reason::kBuilderLost, fmt::format("pod {} is gone", builder.pod_name)};
  }
  if (site.node == nullptr) {
    return Failure{reason::kBuilderLost, fmt::format("node {} is gone", builder.node)};
  }
  if (site.node->cache != nullptr) {
    const api::NodeStatus& facts = site.node->cache->status.node;
    if (facts.gpu_type != builder.gpu_type || facts.cpu_class != builder.cpu_class) {
      return Failure{reason::kBuilderLost, fmt::format("node {} is now {}, {}", builder.node,
                                                       facts.gpu_type, facts.cpu_class)};
    }
  }
  return std::nullopt;
}

std::optional<Failure> HasStopped(const Site& site) {
  const api::ContainerStatus* container = site.pod->container;
  if (container == nullptr) {
    return Failure{reason::kBuilderLost, "its container is gone"};
  }
  if (HasExitedWell(*site.pod)) {
    return std::nullopt;
  }
  if (!container->running) {
    return Failure{reason::kBuilderCrashed,
                   fmt::format("the container ended with exit code {} before its cache was taken"
                               "{}{}",
                               container->exit_code, container->message.empty() ? "" : ": ",
                               container->message)};
  }
  if (site.asked != nullptr && site.asked->started_at != container->started_at) {
    return Failure{reason::kBuilderRestarted,
                   fmt::format("the container was restarted ({} restarts){}{}", container->restarts,
                               container->message.empty() ? "" : ": ", container->message)};
  }
  return std::nullopt;
}

std::optional<Failure> IsLate(Round& round, const Site& site, const BuilderStatus& builder) {
  const int seconds = round.in.warmup.spec.compile.timeout_seconds;
  const Duration limit = std::chrono::seconds(seconds);
  const WallTime ready = ReadyInGroup(round, *site.pod, builder);
  const bool is_ready = ready != WallTime{};
  const WallTime from =
      is_ready ? std::max(ready, builder.elected_time) : site.pod->container->started_at;
  if (round.in.now < from + limit) {
    WakeAt(round, from + limit);
    return std::nullopt;
  }
  if (!is_ready) {
    const std::string& words = site.pod->container->message;
    return Failure{
        reason::kBuilderTimeout,
        fmt::format("pod {} is not ready {} s after its container started "
                    "(compile.timeoutSeconds); look at its log and readiness probe{}{}",
                    ReadyAt(round, *site.pod) == WallTime{} ? builder.pod_name
                                                            : "of the group of " + builder.pod_name,
                    seconds, words.empty() ? "" : ": ", words)};
  }
  if (site.answer != nullptr && site.answer->state == CaptureState::kFailed) {
    return Failure{reason::kPublishFailed, site.answer->message};
  }
  return Failure{reason::kNeverSettled,
                 fmt::format("the cache of pod {} was still changing, or its agent gave no answer, "
                             "{} s after it was ready",
                             builder.pod_name, seconds)};
}

// The agent goes on trying to publish; every other failure is final.
std::optional<Failure> HasFailed(const Site& site) {
  if (site.answer == nullptr || site.answer->state != CaptureState::kFailed ||
      site.answer->reason == reason::kPublishFailed) {
    return std::nullopt;
  }
  return Failure{site.answer->reason.empty() ? reason::kNothingToCapture
                                             : std::string_view(site.answer->reason),
                 site.answer->message};
}

// What the builder pushed. With the other pods of its group it becomes the bundle.
void NoteCaptured(Round& round, const Site& site, BuilderStatus& builder) {
  const CaptureStatus& answer = *site.answer;
  builder.captured = {.digest = answer.digest,
                      .bytes = answer.bytes,
                      .files = answer.files,
                      .native = answer.native,
                      .compile_seconds = answer.compile_seconds,
                      .time = round.stamp()};
  if (!site.pod->of_job && !GroupOf(*site.pod->pod).empty()) {
    builder.ranks = {builder.pod_uid};
  }
  builder.state = BuilderState::kCapturing;
  builder.finished_time = round.stamp();
  builder.reason.clear();
  builder.message.clear();
}

// Why there can be no bundle from this builder any more.
std::optional<Failure> Check(Round& round, const Site& site, const BuilderStatus& builder) {
  if (auto failure = IsLost(site, builder)) {
    return failure;
  }
  if (auto failure = HasStopped(site)) {
    return failure;
  }
  const auto key = fingerprint::KeyOf(Ask(round, site, builder).factors);
  if (!key.ok() || *key != builder.key) {
    return Failure{reason::kBuilderLost,
                   fmt::format("pod {} is not what its key names", builder.pod_name)};
  }
  return HasFailed(site);
}

void Note(Round& round, const CaptureStatus& answer, BuilderStatus& builder) {
  const bool waits = answer.state == CaptureState::kWaiting;
  const bool failed = answer.state == CaptureState::kFailed;
  builder.state = waits ? BuilderState::kElected : BuilderState::kCapturing;
  builder.reason = failed ? answer.reason : std::string();
  builder.message = failed ? CutMessage(answer.message) : std::string();
  if (failed) {
    round.store_refusal = answer.message;
  }
}

}  // namespace

void FollowCapture(Round& round, BuilderStatus& builder) {
  const Site site = FindSite(round, builder, {.pod_uid = builder.pod_uid, .node = builder.node});
  std::optional<Failure> failure = Check(round, site, builder);
  if (!failure && IsPushed(round, site, builder)) {
    NoteCaptured(round, site, builder);
    FollowRanks(round, builder);
    return;
  }
  if (!failure) {
    failure = IsLate(round, site, builder);
  }
  if (failure) {
    FailBuild(round, builder, failure->reason, std::move(failure->message));
    return;
  }
  if (!AwaitRequests(round, *site.pod, builder)) {
    return;
  }
  if (site.node->cache != nullptr) {
    round.captures[site.node_index].push_back(Ask(round, site, builder));
  }
  if (site.answer != nullptr) {
    Note(round, *site.answer, builder);
  }
}

}  // namespace cachewarm::plan
