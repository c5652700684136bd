// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/base/backoff.h"
#include "lib/base/digest.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/plan/building/job_refusal.h"
#include "operator/plan/building/jobs.h"
#include "operator/plan/decisions.h"
#include "operator/plan/gates/groups.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderState;
using api::BuilderStatus;

namespace {

constexpr BackoffPolicy kRetry = {
    .first = std::chrono::seconds(10), .most = std::chrono::minutes(6), .jitter = 0};
constexpr BackoffPolicy kRebuild = {
    .first = std::chrono::minutes(10), .most = std::chrono::hours(24), .jitter = 0};

// ---- when may a key be built again? -------------------------------------------------------------

WallTime NextBuild(const BuilderStatus& last, int backoff_limit) {
  const bool lost = last.state == BuilderState::kFailed && last.reason == reason::kBuilderLost;
  if (lost && last.job.empty()) {
    return last.finished_time;  // nothing was wrong with the build, and a new pod costs nothing
  }
  if (last.state == BuilderState::kFailed && last.attempt <= backoff_limit) {
    return last.finished_time + BackoffDelay(kRetry, last.attempt - 1, 0);
  }
  const int rebuilds =
      last.state == BuilderState::kFailed ? last.attempt - backoff_limit : last.attempt;
  return last.finished_time + BackoffDelay(kRebuild, rebuilds - 1, 0);
}

struct Start {
  std::string revision;
  WallTime created{};
};

std::string HashSettings(const api::WarmupSpec& spec) {
  api::WarmupSpec counts;
  counts.caches = spec.caches;
  counts.gpu_types = spec.gpu_types;
  counts.node_selector = spec.node_selector;
  counts.compile.timeout_seconds = spec.compile.timeout_seconds;
  counts.compile.pending_seconds = spec.compile.pending_seconds;
  counts.compile.settle_seconds = spec.compile.settle_seconds;
  return DigestOf(codec::DumpJson(api::EncodeSpec(counts))).Short();
}

// What starts the count afresh: other settings than the last build is known to have had, and a pod
// of a revision that it has not seen. An old revision's pods do not, or two revisions would take
// turns.
bool IsNews(const Round& round, const BuilderStatus& last, const Start& start) {
  const bool other_settings = !last.settings.empty() && last.settings != round.build_settings;
  return other_settings || (last.revision != start.revision && start.created > last.elected_time);
}

bool MayBuild(Round& round, const BuilderStatus* last, const Start& start) {
  if (last == nullptr || IsNews(round, *last, start)) {
    return true;
  }
  const WallTime next = NextBuild(*last, round.in.warmup.spec.compile.backoff_limit);
  if (round.in.now < next) {
    WakeAt(round, next);
    return false;
  }
  return true;
}

int NextAttempt(const Round& round, const BuilderStatus* last, const Start& start) {
  if (last == nullptr || IsNews(round, *last, start)) {
    return 1;
  }
  const bool lost = last->reason == reason::kBuilderLost && last->job.empty();
  return lost ? last->attempt : last->attempt + 1;
}

BuilderStatus& Begin(Round& round, const LiveKey& key, const Start& start) {
  api::WarmupStatus& status = round.out.status;
  BuilderStatus* present = FindBuilder(status, key.key);
  const int attempt = NextAttempt(round, present, start);
  if (present == nullptr) {
    present = &status.builders.emplace_back();
  }
  *present = {.key = key.key,
              .gpu_type = key.factors.gpu_type,
              .cpu_class = key.factors.cpu_class,
              .image = key.factors.image,
              .revision = start.revision,
              .settings = round.build_settings,
              .attempt = attempt,
              .elected_time = round.stamp()};
  return *present;
}

// ---- first pods ---------------------------------------------------------------------------------

// Of the starters, the ones that had the bundle and compiled all the same.
std::vector<const PodView*> Missed(const Round& round, const LiveKey& key,
                                   const api::BundleStatus& bundle) {
  const BuilderStatus* last = FindBuilder(round.out.status, key.key);
  std::vector<const PodView*> out = Starters(round, key.key);
  std::erase_if(out, [&](const PodView* pod) {
    const bool missed =
        pod->counted == api::StartResult::kMiss || pod->counted == api::StartResult::kPartial;
    const bool built = last != nullptr && last->pod_uid == pod->pod->meta.uid;
    return !missed || built || pod->container->started_at <= bundle.published_time;
  });
  return out;
}

void Elect(Round& round, BuilderStatus& builder, const PodView& pod) {
  builder.pod_uid = pod.pod->meta.uid;
  builder.pod_name = pod.pod->meta.name;
  builder.node = pod.pod->node;
  Tell(round, false, reason::kBuilderElected,
       fmt::format("pod {} on node {} compiles for {}, {} (attempt {})", builder.pod_name,
                   builder.node, builder.gpu_type, builder.cpu_class, builder.attempt));
}

// Keeps room for a held pod on a node of the key that has its directory; false where none has any.
bool TakeRoom(Round& round, const LiveKey& key, const PodView& pod) {
  const auto& nodes = round.targets[key.target].nodes;
  const auto room = std::find_if(nodes.begin(), nodes.end(), [&](size_t node) {
    return round.nodes[node].prepared && CanTake(round, node, *pod.shape);
  });
  if (room == nodes.end()) {
    return false;
  }
  Take(round, *room, *pod.shape);
  return true;
}

// The oldest held pod that some node of the key could take now.
void ElectHeld(Round& round, const LiveKey& key, const BuilderStatus* last) {
  for (size_t i = 0; i < round.pods.size(); ++i) {
    const PodView& pod = round.pods[i];
    const bool taken = std::any_of(round.candidates.begin(), round.candidates.end(),
                                   [&](const Candidate& each) { return each.pod == i; });
    if (!pod.held || !pod.ours || pod.pod->meta.deleting || taken ||
        pod.factors != round.pod_template.factors || HasOtherGate(*pod.pod)) {
      continue;
    }
    const Start start{.revision = pod.revision, .created = pod.pod->meta.created};
    if (!MayBuild(round, last, start) || !TakeRoom(round, key, pod)) {
      continue;
    }
    round.candidates.push_back({.pod = i, .target = key.target, .has_room = true});
    BuilderStatus& builder = Begin(round, key, start);
    builder.pod_uid = pod.pod->meta.uid;
    builder.pod_name = pod.pod->meta.name;
    return;
  }
}

void ElectFirstPod(Round& round, const LiveKey& key, const std::vector<const PodView*>& starters) {
  const BuilderStatus* last = FindBuilder(round.out.status, key.key);
  for (const PodView* pod : starters) {
    const Start start{.revision = pod->revision, .created = pod->pod->meta.created};
    if (MayBuild(round, last, start)) {
      BuilderStatus& builder = Begin(round, key, start);
      Elect(round, builder, *pod);
      FollowCapture(round, builder);
      return;
    }
  }
}

void ElectFor(Round& round, const LiveKey& key) {
  const BuilderStatus* last = FindBuilder(round.out.status, key.key);
  if (last != nullptr && IsRunning(*last)) {
    return;
  }
  if (const api::BundleStatus* bundle = BundleFor(round, key)) {
    ElectFirstPod(round, key, Missed(round, key, *bundle));
    return;
  }
  if (UsesJob(round)) {
    const Start start{.revision = RevisionOfJob(round), .created = round.in.now};
    if (MayMakeJob(round, key) && MayBuild(round, last, start)) {
      MakeJob(round, key, Begin(round, key, start));
    }
    return;
  }
  const auto starters = Starters(round, key.key);
  if (starters.empty()) {
    ElectHeld(round, key, last);
  } else {
    ElectFirstPod(round, key, starters);
  }
}

// ---- builders that have not started -------------------------------------------------------------

// A candidate that cannot become the builder any more. No build has begun, so nothing has failed:
// the next one may be elected at once.
void Retire(Round& round, BuilderStatus& builder, std::string message) {
  builder.state = BuilderState::kFailed;
  builder.finished_time = round.stamp();
  builder.reason = std::string(reason::kBuilderLost);
  builder.message = CutMessage(std::move(message));
}

void FollowCandidate(Round& round, const LiveKey& key, BuilderStatus& builder) {
  if (const auto starters = Starters(round, key.key); !starters.empty()) {
    builder.revision = starters.front()->revision;
    Elect(round, builder, *starters.front());
    FollowCapture(round, builder);
    return;
  }
  const PodView* pod = FindPod(round, builder.pod_uid);
  if (pod == nullptr || pod->pod->meta.deleting || pod->finished) {
    Retire(round, builder, fmt::format("pod {} is gone before it started", builder.pod_name));
    return;
  }
  if (pod->held) {  // its release has not reached the API server yet
    round.candidates.push_back({.pod = static_cast<size_t>(pod - round.pods.data()),
                                .target = key.target,
                                .has_room = TakeRoom(round, key, *pod)});
  }
  if (pod->node >= 0 &&
      round.nodes[static_cast<size_t>(pod->node)].target != static_cast<int>(key.target)) {
    Retire(round, builder,
           fmt::format("pod {} was scheduled to node {}, which has another GPU type or CPU class",
                       builder.pod_name, pod->pod->node));
    return;
  }
  const Duration pending = std::chrono::seconds(round.in.warmup.spec.compile.pending_seconds);
  if (round.in.now >= builder.elected_time + pending) {
    FailBuild(round, builder, reason::kBuilderPending,
              fmt::format("pod {} has not started within compile.pendingSeconds ({} s){}",
                          builder.pod_name, round.in.warmup.spec.compile.pending_seconds,
                          pod->container == nullptr || pod->container->message.empty()
                              ? ""
                              : ": " + pod->container->message));
    return;
  }
  WakeAt(round, builder.elected_time + pending);
}

void Follow(Round& round, BuilderStatus& builder) {
  if (!builder.job.empty() && GiveWay(round, builder)) {
    return;
  }
  if (builder.captured) {
    FollowRanks(round, builder);
    return;
  }
  if (!builder.node.empty()) {
    FollowCapture(round, builder);
    return;
  }
  const auto key = std::find_if(round.keys.begin(), round.keys.end(),
                                [&](const LiveKey& each) { return each.key == builder.key; });
  if (!builder.job.empty()) {
    FollowJob(round, key == round.keys.end() ? nullptr : &*key, builder);
  } else if (key == round.keys.end()) {
    Retire(round, builder, "the image or the nodes that it was elected for are gone");
  } else {
    FollowCandidate(round, *key, builder);
  }
}

// A Job takes a device and one of the cluster's places for builders; a pod of the workload is left
// alone.
void EndJobs(Round& round) {
  for (BuilderStatus& builder : round.out.status.builders) {
    if (IsRunning(builder) && !builder.job.empty()) {
      FailBuild(round, builder, reason::kBuilderLost, "spec.paused is set");
    }
  }
  DeleteDoneJobs(round);
}

}  // namespace

void FailBuild(Round& round, BuilderStatus& builder, std::string_view why, std::string message) {
  builder.state = BuilderState::kFailed;
  builder.finished_time = round.stamp();
  builder.reason = std::string(why);
  builder.message = CutMessage(std::move(message));
  round.out.builds_finished.push_back(
      {.gpu_type = builder.gpu_type,
       .reason = builder.reason,
       .seconds = std::chrono::duration<double>(round.in.now - builder.elected_time).count()});
  Tell(round, true, why,
       fmt::format("attempt {} for {}, {} ended without a bundle: {}", builder.attempt,
                   builder.gpu_type, builder.cpu_class, builder.message));
}

void DecideBuilders(Round& round) {
  if (round.deleting()) {
    for (const BuilderJob& job : round.in.jobs) {
      round.out.jobs_to_delete.push_back(job.name);
    }
    return;
  }
  if (round.paused()) {
    EndJobs(round);
    return;
  }
  round.build_settings = HashSettings(round.in.warmup.spec);
  // Indices: electing may add entries while the loop runs.
  for (size_t i = 0; i < round.out.status.builders.size(); ++i) {
    if (BuilderStatus& builder = round.out.status.builders[i]; IsRunning(builder)) {
      builder.settings = round.build_settings;  // what is asked of it is asked of every build now
      Follow(round, builder);
    }
  }
  if (round.acceptance.inject) {
    for (const LiveKey& key : round.keys) {
      if (key.current) {
        ElectFor(round, key);
      }
    }
  }
  DeleteDoneJobs(round);
}

}  // namespace cachewarm::plan
