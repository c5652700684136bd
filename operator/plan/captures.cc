// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/api/reasons.h"
#include "lib/fingerprint/key.h"
#include "operator/plan/capturing/handshake.h"
#include "operator/plan/capturing/ranks.h"
#include "operator/plan/decisions.h"
#include "operator/plan/gates/groups.h"
#include "operator/plan/nodes/offer.h"

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

std::optional<Failure> CheckPresent(const CaptureHandshake& handshake,
                                    const BuilderStatus& builder) {
  if (handshake.pod == nullptr || handshake.pod->pod->node != builder.node) {
    return Failure{reason::kBuilderLost, fmt::format("pod {} is gone", builder.pod_name)};
  }
  if (handshake.node == nullptr) {
    return Failure{reason::kBuilderLost, fmt::format("node {} is gone", builder.node)};
  }
  if (handshake.node->cache != nullptr) {
    const api::NodeStatus& facts = handshake.node->cache->status.node;
    const bool same_gpu = IsGpuUnknown(facts) || facts.gpu_type == builder.gpu_type;
    if (!same_gpu || facts.cpu_class != builder.cpu_class) {
      return Failure{reason::kBuilderLost,
                     fmt::format("node {} now has GPU type {} and CPU class {}, which are "
                                 "not those of the build",
                                 builder.node, facts.gpu_type, facts.cpu_class)};
    }
  }
  return std::nullopt;
}

std::optional<Failure> CheckContainer(const CaptureHandshake& handshake) {
  const api::ContainerStatus* container = handshake.pod->container;
  if (container == nullptr) {
    return Failure{reason::kBuilderLost, "the builder's container is gone"};
  }
  if (HasSucceeded(*handshake.pod)) {
    return std::nullopt;
  }
  if (!container->running) {
    return Failure{
        reason::kBuilderCrashed,
        fmt::format("the container exited with code {} before its cache was captured{}{}",
                    container->exit_code, container->message.empty() ? "" : ": ",
                    container->message)};
  }
  if (handshake.request != nullptr && handshake.request->started_time != container->started_time) {
    return Failure{reason::kBuilderRestarted,
                   fmt::format("the container restarted during the build ({} restarts){}{}",
                               container->restarts, container->message.empty() ? "" : ": ",
                               container->message)};
  }
  return std::nullopt;
}

std::optional<Failure> CheckDeadline(PlanContext& context, const CaptureHandshake& handshake,
                                     const BuilderStatus& builder) {
  const int seconds = context.in.warmup.spec.compile.timeout_seconds;
  const Duration limit = std::chrono::seconds(seconds);
  const WallTime ready = ReadyInGroup(context, *handshake.pod, builder);
  const bool is_ready = ready != WallTime{};
  const WallTime from =
      is_ready ? std::max(ready, builder.elected_time) : handshake.pod->container->started_time;
  if (context.in.now < from + limit) {
    RequeueAt(context, from + limit);
    return std::nullopt;
  }
  if (!is_ready) {
    const std::string& words = handshake.pod->container->message;
    return Failure{
        reason::kBuilderTimeout,
        fmt::format("{} was not ready {} s after the builder's container started "
                    "(compile.timeoutSeconds); check the pod's log and readiness probe{}{}",
                    ReadyAt(context, *handshake.pod) == WallTime{}
                        ? "pod " + builder.pod_name
                        : "a pod in the group of pod " + builder.pod_name,
                    seconds,
                    words.empty() ? "" : "; last message of the builder's container: ", words)};
  }
  if (handshake.answer != nullptr && handshake.answer->state == CaptureState::kFailed) {
    return Failure{reason::kPublishFailed, handshake.answer->message};
  }
  return Failure{reason::kCacheNotSettled,
                 fmt::format("the cache of pod {} was still changing, or the agent on its node "
                             "did not answer, {} s (compile.timeoutSeconds) after the pod became "
                             "ready",
                             builder.pod_name, seconds)};
}

// Returns the failure that the agent reported, if it is final. A failure to publish is not final,
// because the agent retries it.
std::optional<Failure> CheckAnswer(const CaptureHandshake& handshake) {
  if (handshake.answer == nullptr || handshake.answer->state != CaptureState::kFailed ||
      handshake.answer->reason == reason::kPublishFailed) {
    return std::nullopt;
  }
  return Failure{handshake.answer->reason.empty() ? reason::kNothingToCapture
                                                  : std::string_view(handshake.answer->reason),
                 handshake.answer->message};
}

// Returns a message about the files of the builder that match no cache kind; empty if there are
// none.
std::string DescribeLeftBehind(const api::LeftBehind& left, const BuilderStatus& builder) {
  return left.files == 0
             ? std::string()
             : TruncateMessage(fmt::format(
                   "the bundle lacks {} files ({} bytes) of pod {} that match no cache kind, in "
                   "{}; "
                   "add a custom cache to spec.caches if an engine reads them",
                   left.files, left.bytes, builder.pod_name, fmt::join(left.directories, ", ")));
}

// Records in `builder` the bundle with the builder's own files. FollowRanks() adds the files of the
// other pods of its group.
void RecordCapture(PlanContext& context, const CaptureHandshake& handshake,
                   BuilderStatus& builder) {
  const CaptureStatus& answer = *handshake.answer;
  builder.captured = {.digest = answer.digest,
                      .bytes = answer.bytes,
                      .files = answer.files,
                      .native = answer.native,
                      .compile_seconds = answer.compile_seconds,
                      .captured_time = context.stamp()};
  if (!handshake.pod->of_job && !GroupOf(*handshake.pod->pod).empty()) {
    builder.ranks = {builder.pod_uid};
  }
  builder.state = BuilderState::kCapturing;
  builder.finished_time = context.stamp();
  builder.reason.clear();
  builder.message = DescribeLeftBehind(answer.left_behind, builder);
}

// Returns the reason why this builder can no longer produce a bundle; nullopt if it still can.
std::optional<Failure> FindFailure(PlanContext& context, const CaptureHandshake& handshake,
                                   const BuilderStatus& builder) {
  if (auto failure = CheckPresent(handshake, builder)) {
    return failure;
  }
  if (auto failure = CheckContainer(handshake)) {
    return failure;
  }
  const auto key = fingerprint::KeyOf(MakeCaptureRequest(context, handshake, builder).factors);
  if (!key.ok() || *key != builder.key) {
    return Failure{
        reason::kBuilderLost,
        fmt::format("pod {} no longer has the image, devices or container that it had when "
                    "it became the builder",
                    builder.pod_name)};
  }
  return CheckAnswer(handshake);
}

void UpdateBuilder(PlanContext& context, const CaptureStatus& answer, BuilderStatus& builder) {
  const bool waits = answer.state == CaptureState::kWaiting;
  const bool failed = answer.state == CaptureState::kFailed;
  builder.state = waits ? BuilderState::kElected : BuilderState::kCapturing;
  builder.reason = failed ? answer.reason : std::string();
  builder.message = failed ? TruncateMessage(answer.message) : std::string();
  if (failed) {
    context.store_refusal = answer.message;
  }
}

}  // namespace

void FollowCapture(PlanContext& context, BuilderStatus& builder) {
  const CaptureHandshake handshake =
      FindCaptureHandshake(context, builder, {.pod_uid = builder.pod_uid, .node = builder.node});
  std::optional<Failure> failure = FindFailure(context, handshake, builder);
  if (!failure && IsPushed(context, handshake, builder)) {
    RecordCapture(context, handshake, builder);
    FollowRanks(context, builder);
    return;
  }
  if (!failure) {
    failure = CheckDeadline(context, handshake, builder);
  }
  if (failure) {
    FailBuild(context, builder, failure->reason, std::move(failure->message));
    return;
  }
  if (!FollowBuildRequests(context, *handshake.pod, builder)) {
    return;
  }
  if (handshake.node->cache != nullptr) {
    context.captures[handshake.node_index].push_back(
        MakeCaptureRequest(context, handshake, builder));
  }
  if (handshake.answer != nullptr) {
    UpdateBuilder(context, *handshake.answer, builder);
  }
}

}  // namespace cachewarm::plan
