// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/capturing/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/api/reasons.h"
#include "operator/plan/capturing/site.h"
#include "operator/plan/decisions.h"
#include "operator/plan/gates/groups.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderStatus;
using api::CaptureState;
using api::CaptureStatus;

namespace {

// Of the pods of an Indexed Job (Kubernetes, batch/v1; a JobSet makes such), a Volcano Job, and a
// PyTorchJob and its like (Kubeflow).
constexpr std::array<std::string_view, 3> kIndexLabels = {
    "batch.kubernetes.io/job-completion-index", "volcano.sh/task-index",
    "training.kubeflow.org/replica-index"};
// A ready rank is as far as the builder was when that was captured: one that is silent for longer
// than this, beyond the time to settle, will not be.
constexpr Duration kSilentMost = std::chrono::minutes(2);

bool IsDone(const BuilderStatus& builder, const std::string& uid) {
  return uid == builder.pod_uid ||
         std::find(builder.ranks.begin(), builder.ranks.end(), uid) != builder.ranks.end();
}

// The builder itself may be gone by now: then a rank that was captured tells.
std::string GroupOfBuilder(const Round& round, const BuilderStatus& builder) {
  if (const PodView* pod = FindPod(round, builder.pod_uid)) {
    return pod->of_job ? "" : GroupOf(*pod->pod);
  }
  for (const std::string& uid : builder.ranks) {
    if (const PodView* pod = FindPod(round, uid)) {
      return GroupOf(*pod->pod);
    }
  }
  return "";
}

// When the builder had come to its end; now, while it has not.
WallTime EndOfBuilder(const Round& round, const BuilderStatus& builder) {
  const PodView* pod = FindPod(round, builder.pod_uid);
  const WallTime end = pod == nullptr ? builder.finished_time : ReadyAt(round, *pod);
  return end == WallTime{} ? round.in.now : end;
}

bool HasIndex(const api::Pod& pod) {
  return std::any_of(kIndexLabels.begin(), kIndexLabels.end(),
                     [&](std::string_view label) { return pod.meta.labels.contains(label); });
}

// Of pods that run to their end only those with an index are ranks: workers of one queue are alike,
// and new ones follow as long as there is work. What began when the builder had ended is of a later
// run.
void AddFinishers(const Round& round, const BuilderStatus& builder,
                  std::vector<const PodView*>& out) {
  const WallTime end = EndOfBuilder(round, builder);
  for (const PodView& pod : round.pods) {
    if (pod.ends_by_itself && pod.ours && !pod.of_job && !pod.pod->meta.deleting &&
        pod.container != nullptr && (pod.container->running || HasExitedWell(pod)) &&
        pod.container->started_at != WallTime{} && pod.container->started_at <= end &&
        HasIndex(*pod.pod) && HasKey(round, pod, builder.key)) {
      out.push_back(&pod);
    }
  }
}

// One that was asked already goes on: another that is seen late must not take its turn.
const PodView* NextRank(const Round& round, const BuilderStatus& builder) {
  const std::vector<const PodView*> left = RanksLeft(round, builder);
  if (left.empty() || builder.ranks.size() >= api::kRanksMax) {
    return nullptr;
  }
  const auto asked = std::find_if(left.begin(), left.end(), [&](const PodView* pod) {
    return FindSite(round, builder, {.pod_uid = pod->pod->meta.uid, .node = pod->pod->node})
               .asked != nullptr;
  });
  return asked == left.end() ? left.front() : *asked;
}

// The agent packs, or goes on trying to publish.
bool IsAtWork(const CaptureStatus& answer) {
  return answer.state == CaptureState::kPacking ||
         (answer.state == CaptureState::kFailed && answer.reason == reason::kPublishFailed);
}

WallTime DeadlineOf(const Round& round, const Site& site, const BuilderStatus& builder) {
  const auto& compile = round.in.warmup.spec.compile;
  const WallTime all = builder.finished_time + std::chrono::seconds(compile.timeout_seconds);
  const bool at_work = site.answer != nullptr && IsAtWork(*site.answer);
  if (at_work || ReadyAt(round, *site.pod) == WallTime{}) {
    return all;
  }
  return std::min(
      all, builder.captured->time + std::chrono::seconds(compile.settle_seconds) + kSilentMost);
}

// Why there will be no capture of this rank; empty: there may be.
std::string WhyGivenUp(Round& round, const Site& site, const BuilderStatus& builder) {
  if (site.node->cache == nullptr) {
    return "its node has no agent";
  }
  if (!site.node->cache->status.node.keeps_bundles) {
    return "the agent of its node is of an older version, which cannot add to a bundle";
  }
  const bool failed = site.answer != nullptr && site.answer->state == CaptureState::kFailed;
  if (failed && !IsAtWork(*site.answer)) {
    return fmt::format("{}: {}", site.answer->reason, site.answer->message);
  }
  const WallTime deadline = DeadlineOf(round, site, builder);
  if (round.in.now >= deadline) {
    return site.answer == nullptr ? std::string("its agent gave no answer")
                                  : fmt::format("it came to no end: {}", site.answer->message);
  }
  WakeAt(round, deadline);
  return "";
}

// A rank that has nothing of its own is in the bundle as it is.
bool HasNothing(const CaptureStatus& answer) {
  return answer.state == CaptureState::kWaiting && answer.reason == reason::kNothingToCapture;
}

void Add(const CaptureStatus& answer, api::CapturedBundle& captured) {
  captured.digest = answer.digest;
  captured.bytes = answer.bytes;
  captured.files = answer.files;
  captured.native = captured.native || answer.native;
  captured.compile_seconds = std::max(captured.compile_seconds, answer.compile_seconds);
}

void GiveUp(Round& round, const PodView& rank, const std::string& why, BuilderStatus& builder) {
  const std::string words = fmt::format("pod {} on node {} of its group is not in the bundle: {}",
                                        rank.pod->meta.name, rank.pod->node, why);
  builder.message =
      CutMessage(builder.message.empty() ? words : fmt::format("{}; {}", builder.message, words));
  Tell(round, true, reason::kRankNotCaptured, CutMessage(words));
}

// False while the rank is being captured.
bool IsThrough(Round& round, const PodView& rank, BuilderStatus& builder) {
  const Site site =
      FindSite(round, builder, {.pod_uid = rank.pod->meta.uid, .node = rank.pod->node});
  if (IsPushed(round, site, builder)) {
    Add(*site.answer, *builder.captured);
    return true;
  }
  if (site.answer != nullptr && HasNothing(*site.answer)) {
    return true;
  }
  if (const std::string why = WhyGivenUp(round, site, builder); !why.empty()) {
    GiveUp(round, rank, why, builder);
    return true;
  }
  round.captures[site.node_index].push_back(Ask(round, site, builder));
  if (site.answer != nullptr && site.answer->state == CaptureState::kFailed) {
    round.store_refusal = site.answer->message;
  }
  return false;
}

void Record(Round& round, BuilderStatus& builder) {
  const api::BundleStatus bundle{.key = builder.key,
                                 .gpu_type = builder.gpu_type,
                                 .cpu_class = builder.cpu_class,
                                 .image = builder.image,
                                 .digest = builder.captured->digest,
                                 .bytes = builder.captured->bytes,
                                 .files = builder.captured->files,
                                 .native = builder.captured->native,
                                 .compile_seconds = builder.captured->compile_seconds,
                                 .builder_pod = builder.pod_name,
                                 .builder_node = builder.node,
                                 .published_time = round.stamp()};
  auto& bundles = round.out.status.bundles;
  const auto present = std::find_if(bundles.begin(), bundles.end(),
                                    [&](const auto& each) { return each.key == builder.key; });
  if (present == bundles.end()) {
    bundles.push_back(bundle);
  } else {
    *present = bundle;
  }
  round.serving.clear();
  builder.state = api::BuilderState::kCaptured;
  builder.reason = std::string(reason::kCaptured);
  builder.captured.reset();
  const double seconds = std::chrono::duration<double>(round.in.now - builder.elected_time).count();
  round.out.builds_finished.push_back(
      {.gpu_type = builder.gpu_type, .reason = builder.reason, .seconds = seconds});
  const std::string group =
      builder.ranks.size() > 1
          ? fmt::format(", the first of {} pods of its group,", builder.ranks.size())
          : std::string();
  Tell(round, false, reason::kPublished,
       fmt::format("{} files, {} bytes from pod {}{} for {}, {}: {}", bundle.files, bundle.bytes,
                   builder.pod_name, group, builder.gpu_type, builder.cpu_class,
                   bundle.digest.ToString()));
}

}  // namespace

std::vector<const PodView*> RanksLeft(const Round& round, const BuilderStatus& builder) {
  const std::string group = GroupOfBuilder(round, builder);
  if (group.empty()) {
    return {};
  }
  std::vector<const PodView*> out = Starters(round, builder.key);
  std::erase_if(out, [](const PodView* pod) { return pod->ends_by_itself; });
  AddFinishers(round, builder, out);
  std::erase_if(out, [&](const PodView* pod) {
    return IsDone(builder, pod->pod->meta.uid) || GroupOf(*pod->pod) != group;
  });
  SortByStart(out);
  return out;
}

WallTime ReadyInGroup(const Round& round, const PodView& pod, const BuilderStatus& builder) {
  WallTime ready = ReadyAt(round, pod);
  if (builder.captured || ready == WallTime{}) {
    return ready;
  }
  for (const PodView* rank : RanksLeft(round, builder)) {
    const WallTime other = ReadyAt(round, *rank);
    if (other == WallTime{}) {
      return {};
    }
    ready = std::max(ready, other);
  }
  return ready;
}

void FollowRanks(Round& round, BuilderStatus& builder) {
  while (const PodView* rank = NextRank(round, builder)) {
    if (!IsThrough(round, *rank, builder)) {
      return;
    }
    builder.ranks.push_back(rank->pod->meta.uid);
    builder.captured->time = round.stamp();
  }
  Record(round, builder);
}

}  // namespace cachewarm::plan
