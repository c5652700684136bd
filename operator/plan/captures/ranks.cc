// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/captures/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/api/reasons.h"
#include "operator/model/pod_groups.h"
#include "operator/plan/builders/publication.h"
#include "operator/plan/captures/handshake.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderStatus;
using api::CaptureState;
using api::CaptureStatus;

namespace {

// Index labels of an Indexed Job (batch/v1, also from a JobSet), a Volcano Job, and a PyTorchJob or
// similar Kubeflow kind.
constexpr std::array<std::string_view, 3> kIndexLabels = {
    "batch.kubernetes.io/job-completion-index", "volcano.sh/task-index",
    "training.kubeflow.org/replica-index"};
// After the previous pod of the group is captured, the agent of a ready rank has the settle time
// plus this time to capture the rank; then the rank is skipped. This is long enough, because a
// ready rank has already compiled as much as the builder had at the time of its own capture.
constexpr Duration kSilenceMax = std::chrono::minutes(2);

bool IsDone(const BuilderStatus& builder, const std::string& uid) {
  return uid == builder.pod_uid ||
         std::find(builder.ranks.begin(), builder.ranks.end(), uid) != builder.ranks.end();
}

// Returns the group of the builder's pod; if that pod is gone, the group of a captured rank.
std::string GroupOfBuilder(const Context& context, const BuilderStatus& builder) {
  if (const PodView* pod = FindPod(context, builder.pod_uid)) {
    return pod->of_job ? "" : model::GroupOf(*pod->pod);
  }
  for (const std::string& uid : builder.ranks) {
    if (const PodView* pod = FindPod(context, uid)) {
      return model::GroupOf(*pod->pod);
    }
  }
  return "";
}

// Returns when the builder completed its first start; the present time if it has not.
WallTime EndOfBuilder(const Context& context, const BuilderStatus& builder) {
  const PodView* pod = FindPod(context, builder.pod_uid);
  const WallTime end = pod == nullptr ? builder.finished_time : ReadyAt(context, *pod);
  return end == WallTime{} ? context.in.now : end;
}

bool HasIndex(const api::Pod& pod) {
  return std::any_of(kIndexLabels.begin(), kIndexLabels.end(),
                     [&](std::string_view label) { return pod.meta.labels.contains(label); });
}

// Adds the ranks that run to completion. Only pods with an index count as ranks. Pods without one
// may be workers of a queue, which are interchangeable and are replaced all the time: there is no
// fixed set of them to capture. Skips pods that started after the builder had completed its first
// start, because they belong to a later run.
void AddIndexedRanks(const Context& context, const BuilderStatus& builder,
                     std::vector<const PodView*>& out) {
  const WallTime end = EndOfBuilder(context, builder);
  for (const PodView& pod : context.pods) {
    if (pod.runs_to_completion && pod.injected && !pod.of_job && !pod.pod->meta.deleting &&
        pod.container != nullptr && (pod.container->running || HasSucceeded(pod)) &&
        pod.container->started_time != WallTime{} && pod.container->started_time <= end &&
        HasIndex(*pod.pod) && HasKey(context, pod, builder.key)) {
      out.push_back(&pod);
    }
  }
}

// Returns the rank to capture next; nullptr if none is left. A rank whose capture is already
// requested comes first, so that a rank that appears later does not displace it.
const PodView* NextRank(const Context& context, const BuilderStatus& builder) {
  const std::vector<const PodView*> left = RanksLeft(context, builder);
  if (left.empty() || builder.ranks.size() >= api::kRanksMax) {
    return nullptr;
  }
  const auto requested = std::find_if(left.begin(), left.end(), [&](const PodView* pod) {
    return FindCaptureHandshake(context, builder,
                                {.pod_uid = pod->pod->meta.uid, .node = pod->pod->node})
               .request != nullptr;
  });
  return requested == left.end() ? left.front() : *requested;
}

// True while the agent packs the rank's files or retries to publish them.
bool IsAtWork(const CaptureStatus& answer) {
  return answer.state == CaptureState::kPacking ||
         (answer.state == CaptureState::kFailed && answer.reason == reason::kPublishFailed);
}

WallTime DeadlineOf(const Context& context, const CaptureHandshake& handshake,
                    const BuilderStatus& builder) {
  const auto& compile = context.in.warmup.spec.compile;
  const WallTime all = builder.finished_time + std::chrono::seconds(compile.timeout_seconds);
  const bool at_work = handshake.answer != nullptr && IsAtWork(*handshake.answer);
  if (at_work || ReadyAt(context, *handshake.pod) == WallTime{}) {
    return all;
  }
  return std::min(all, builder.captured->captured_time +
                           std::chrono::seconds(compile.settle_seconds) + kSilenceMax);
}

// Returns the reason why this rank will not be captured; "" while its capture is still possible.
std::string WhyNotCaptured(const Context& context, const CaptureHandshake& handshake,
                           const BuilderStatus& builder, Effects& effects) {
  if (handshake.node->cache == nullptr) {
    return "the node has no agent";
  }
  if (!handshake.node->cache->status.node.extends_bundles) {
    return "the agent on the node is too old and cannot add files to a bundle; upgrade the agent";
  }
  const bool failed =
      handshake.answer != nullptr && handshake.answer->state == CaptureState::kFailed;
  if (failed && !IsAtWork(*handshake.answer)) {
    return fmt::format("{}: {}", handshake.answer->reason, handshake.answer->message);
  }
  const WallTime deadline = DeadlineOf(context, handshake, builder);
  if (context.in.now >= deadline) {
    return handshake.answer == nullptr
               ? std::string("the agent on the node did not answer")
               : fmt::format("the capture did not finish in time: {}", handshake.answer->message);
  }
  effects.RequeueAt(deadline);
  return "";
}

// True if the rank has no files of its own that could be added to the bundle.
bool HasNothingToAdd(const CaptureStatus& answer) {
  return answer.state == CaptureState::kWaiting && answer.reason == reason::kNothingToCapture;
}

void MergeCapture(const CaptureStatus& answer, api::CapturedBundle& captured) {
  captured.digest = answer.digest;
  captured.bytes = answer.bytes;
  captured.files = answer.files;
  captured.native = captured.native || answer.native;
  captured.compile_seconds = std::max(captured.compile_seconds, answer.compile_seconds);
}

void SkipRank(const Context& context, Builds& builds, const PodView& rank, const std::string& why,
              BuilderStatus& builder) {
  const std::string message =
      fmt::format("the bundle lacks the cache of pod {} (in the builder's group) on node {}: {}",
                  rank.pod->meta.name, rank.pod->node, why);
  builder.message = TruncateMessage(
      builder.message.empty() ? message : fmt::format("{}; {}", builder.message, message));
  builds.effects.RecordEvent(context.in.warmup, true, reason::kRankNotCaptured,
                             TruncateMessage(message));
}

// Captures one rank; called until the capture has ended. Returns false while the capture is in
// progress; true once the rank is captured, has nothing to add, or is skipped.
bool FollowRank(const Context& context, Builds& builds, const PodView& rank,
                BuilderStatus& builder) {
  const CaptureHandshake handshake = FindCaptureHandshake(
      context, builder, {.pod_uid = rank.pod->meta.uid, .node = rank.pod->node});
  if (IsPushed(context, handshake, builder)) {
    MergeCapture(*handshake.answer, *builder.captured);
    return true;
  }
  if (handshake.answer != nullptr && HasNothingToAdd(*handshake.answer)) {
    return true;
  }
  if (const std::string why = WhyNotCaptured(context, handshake, builder, builds.effects);
      !why.empty()) {
    SkipRank(context, builds, rank, why, builder);
    return true;
  }
  builds.captures[handshake.node_index].push_back(MakeCaptureRequest(context, handshake, builder));
  if (handshake.answer != nullptr && handshake.answer->state == CaptureState::kFailed) {
    builds.store_refusal = handshake.answer->message;
  }
  return false;
}

}  // namespace

std::vector<const PodView*> RanksLeft(const Context& context, const BuilderStatus& builder) {
  const std::string group = GroupOfBuilder(context, builder);
  if (group.empty()) {
    return {};
  }
  std::vector<const PodView*> out = RunningPods(context, builder.key);
  std::erase_if(out, [](const PodView* pod) { return pod->runs_to_completion; });
  AddIndexedRanks(context, builder, out);
  std::erase_if(out, [&](const PodView* pod) {
    return IsDone(builder, pod->pod->meta.uid) || model::GroupOf(*pod->pod) != group;
  });
  SortByStart(out);
  return out;
}

bool IsGrouped(const Context& context, const BuilderStatus& builder) {
  const std::string group = GroupOfBuilder(context, builder);
  if (group.empty()) {
    return false;
  }
  return builder.captured.has_value() ||
         std::any_of(context.pods.begin(), context.pods.end(), [&](const PodView& pod) {
           return pod.pod->meta.uid != builder.pod_uid && (!pod.finished || HasSucceeded(pod)) &&
                  model::GroupOf(*pod.pod) == group;
         });
}

WallTime ReadyInGroup(const Context& context, const PodView& pod, const BuilderStatus& builder) {
  WallTime ready = ReadyAt(context, pod);
  if (builder.captured || ready == WallTime{}) {
    return ready;
  }
  for (const PodView* rank : RanksLeft(context, builder)) {
    const WallTime other = ReadyAt(context, *rank);
    if (other == WallTime{}) {
      return {};
    }
    ready = std::max(ready, other);
  }
  return ready;
}

void FollowRanks(const Context& context, Builds& builds, BuilderStatus& builder) {
  while (const PodView* rank = NextRank(context, builder)) {
    if (!FollowRank(context, builds, *rank, builder)) {
      return;
    }
    builder.ranks.push_back(rank->pod->meta.uid);
    builder.captured->captured_time = context.stamp();
  }
  CompleteBuild(context, builds, builder);
}

}  // namespace cachewarm::plan
