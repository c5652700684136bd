// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/api/reasons.h"
#include "lib/fingerprint/key.h"
#include "operator/model/pod_groups.h"
#include "operator/plan/builders/publication.h"
#include "operator/plan/captures/handshake.h"
#include "operator/plan/captures/ranks.h"
#include "operator/plan/decisions.h"
#include "operator/plan/nodes/offer.h"
#include "operator/plan/starts/start_cause.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderStatus;
using api::CaptureState;
using api::CaptureStatus;

namespace {

std::optional<BuildFailure> CheckPresent(const CaptureHandshake& handshake,
                                         const BuilderStatus& builder) {
  if (handshake.pod == nullptr || handshake.pod->pod->node != builder.node) {
    return BuildFailure{BuildEvent::kPodGone, fmt::format("pod {} is gone", builder.pod_name)};
  }
  if (handshake.node == nullptr) {
    return BuildFailure{BuildEvent::kNodeGone, fmt::format("node {} is gone", builder.node)};
  }
  if (handshake.node->cache != nullptr) {
    const api::NodeStatus& facts = handshake.node->cache->status.node;
    const bool same_gpu = IsGpuUnknown(facts) || facts.gpu_type == builder.gpu_type;
    if (!same_gpu || facts.cpu_class != builder.cpu_class) {
      return BuildFailure{BuildEvent::kNodeChanged,
                          fmt::format("node {} now has GPU type {} and CPU class {}, which are "
                                      "not those of the build",
                                      builder.node, facts.gpu_type, facts.cpu_class)};
    }
  }
  return std::nullopt;
}

std::optional<BuildFailure> CheckContainer(const CaptureHandshake& handshake) {
  const api::ContainerStatus* container = handshake.pod->container;
  if (container == nullptr) {
    return BuildFailure{BuildEvent::kPodGone, "the builder's container is gone"};
  }
  if (HasSucceeded(*handshake.pod)) {
    return std::nullopt;
  }
  if (!container->running) {
    return BuildFailure{
        BuildEvent::kContainerEnded,
        fmt::format("the container exited with code {} before its cache was captured{}{}",
                    container->exit_code, container->message.empty() ? "" : ": ",
                    container->message)};
  }
  if (handshake.request != nullptr && handshake.request->started_time != container->started_time) {
    return BuildFailure{BuildEvent::kContainerRestarted,
                        fmt::format("the container restarted during the build ({} restarts){}{}",
                                    container->restarts, container->message.empty() ? "" : ": ",
                                    container->message)};
  }
  return std::nullopt;
}

std::optional<BuildFailure> CheckDeadline(const Context& context, const CaptureHandshake& handshake,
                                          const BuilderStatus& builder, Effects& effects) {
  const int seconds = context.in.warmup.spec.compile.timeout_seconds;
  const Duration limit = std::chrono::seconds(seconds);
  const WallTime ready = ReadyInGroup(context, *handshake.pod, builder);
  const bool is_ready = ready != WallTime{};
  const WallTime from =
      is_ready ? std::max(ready, builder.elected_time) : handshake.pod->container->started_time;
  if (context.in.now < from + limit) {
    effects.RequeueAt(from + limit);
    return std::nullopt;
  }
  if (!is_ready) {
    const std::string& words = handshake.pod->container->message;
    return BuildFailure{
        BuildEvent::kReadyTimeout,
        fmt::format("{} was not ready {} s after the builder's container started "
                    "(compile.timeoutSeconds); check the pod's log and readiness probe{}{}",
                    ReadyAt(context, *handshake.pod) == WallTime{}
                        ? "pod " + builder.pod_name
                        : "a pod in the group of pod " + builder.pod_name,
                    seconds,
                    words.empty() ? "" : "; last message of the builder's container: ", words)};
  }
  if (handshake.answer != nullptr && handshake.answer->state == CaptureState::kFailed) {
    return BuildFailure{BuildEvent::kPublishTimeout, handshake.answer->message};
  }
  return BuildFailure{
      BuildEvent::kSettleTimeout,
      fmt::format("the cache of pod {} was still changing, or the agent on its node "
                  "did not answer, {} s (compile.timeoutSeconds) after the pod became "
                  "ready",
                  builder.pod_name, seconds)};
}

// Returns the failure that the agent reported, if it is final. A failure to publish is not final,
// because the agent retries it.
std::optional<BuildFailure> CheckAnswer(const CaptureHandshake& handshake) {
  if (handshake.answer == nullptr || handshake.answer->state != CaptureState::kFailed ||
      handshake.answer->reason == reason::kPublishFailed) {
    return std::nullopt;
  }
  return BuildFailure{.event = BuildEvent::kCaptureFailed,
                      .message = handshake.answer->message,
                      .reason = handshake.answer->reason};
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
void RecordCapture(const Context& context, const CaptureHandshake& handshake,
                   BuilderStatus& builder) {
  const CaptureStatus& answer = *handshake.answer;
  Advance(builder, BuildEvent::kPushed);
  builder.captured = {
      .digest = answer.digest,
      .bytes = answer.bytes,
      .files = answer.files,
      .native = answer.native,
      .compile_seconds = answer.compile_seconds,
      .captured_time = context.stamp(),
      .factors = factors::Encode(StartFactorsOf(context, *handshake.pod, *handshake.node))};
  if (!handshake.pod->of_job && !model::GroupOf(*handshake.pod->pod).empty()) {
    builder.ranks = {builder.pod_uid};
  }
  builder.finished_time = context.stamp();
  builder.message = DescribeLeftBehind(answer.left_behind, builder);
}

// Returns the reason why this builder can no longer produce a bundle; nullopt if it still can.
std::optional<BuildFailure> FindFailure(const Context& context, const CaptureHandshake& handshake,
                                        const BuilderStatus& builder) {
  if (auto failure = CheckPresent(handshake, builder)) {
    return failure;
  }
  if (auto failure = CheckContainer(handshake)) {
    return failure;
  }
  const auto key = fingerprint::KeyOf(MakeCaptureRequest(context, handshake, builder).factors);
  if (!key.ok() || *key != builder.key) {
    return BuildFailure{
        BuildEvent::kPodChanged,
        fmt::format("pod {} no longer has the image, devices or container that it had when "
                    "it became the builder",
                    builder.pod_name)};
  }
  return CheckAnswer(handshake);
}

void UpdateBuilder(Builds& builds, const CaptureStatus& answer, BuilderStatus& builder) {
  builder.message.clear();
  if (answer.state != CaptureState::kFailed) {
    const bool waits = answer.state == CaptureState::kWaiting;
    Advance(builder, waits ? BuildEvent::kAgentWaits : BuildEvent::kAgentPacks);
    return;
  }
  Advance(builder, BuildEvent::kPublishRetried);
  builder.reason = answer.reason;
  builder.message = TruncateMessage(answer.message);
  builds.store_refusal = answer.message;
}

}  // namespace

void FollowCapture(const Context& context, Builds& builds, BuilderStatus& builder) {
  const CaptureHandshake handshake =
      FindCaptureHandshake(context, builder, {.pod_uid = builder.pod_uid, .node = builder.node});
  std::optional<BuildFailure> failure = FindFailure(context, handshake, builder);
  if (!failure && IsPushed(context, handshake, builder)) {
    RecordCapture(context, handshake, builder);
    FollowRanks(context, builds, builder);
    return;
  }
  if (!failure) {
    failure = CheckDeadline(context, handshake, builder, builds.effects);
  }
  if (failure) {
    FailBuild(context, builds.effects, builder, *std::move(failure));
    return;
  }
  if (!FollowBuildRequests(context, builds, *handshake.pod, builder)) {
    return;
  }
  if (handshake.node->cache != nullptr) {
    builds.captures[handshake.node_index].push_back(
        MakeCaptureRequest(context, handshake, builder));
  }
  if (handshake.answer != nullptr) {
    UpdateBuilder(builds, *handshake.answer, builder);
  }
}

}  // namespace cachewarm::plan
