// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/base/backoff.h"
#include "lib/base/digest.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/model/pod_groups.h"
#include "operator/plan/builders/job_refusal.h"
#include "operator/plan/builders/jobs.h"
#include "operator/plan/builders/proof.h"
#include "operator/plan/builders/publication.h"
#include "operator/plan/builders/transitions.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderState;
using api::BuilderStatus;

namespace {

constexpr BackoffPolicy kRetry = {
    .first = std::chrono::seconds(10), .most = std::chrono::minutes(6), .jitter = 0};
constexpr BackoffPolicy kRebuild = {
    .first = std::chrono::minutes(10), .most = std::chrono::hours(24), .jitter = 0};

// ---- retries and rebuilds -----------------------------------------------------------------------

WallTime NextBuild(const BuilderStatus& last, int backoff_limit) {
  const bool lost = last.state == BuilderState::kFailed && last.reason == reason::kBuilderLost;
  if (lost && last.job.empty()) {
    // Retry at once, without backoff: the build lost its pod but is not known to fail, and the next
    // builder is a pod that runs anyway.
    return last.finished_time;
  }
  if (last.state == BuilderState::kFailed && last.attempt <= backoff_limit) {
    return last.finished_time + BackoffDelay(kRetry, last.attempt - 1, 0);
  }
  const int rebuilds =
      last.state == BuilderState::kFailed ? last.attempt - backoff_limit : last.attempt;
  return last.finished_time + BackoffDelay(kRebuild, rebuilds - 1, 0);
}

// Time that the agents get to replace cache directories with files of a suspended bundle, before a
// Job mounts such a directory.
constexpr Duration kTreeReplacement = std::chrono::seconds(30);

struct BuildTrigger {
  BuildEvent event;
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
  counts.compile.proof = spec.compile.proof;
  codec::Json hashed = api::EncodeSpec(counts);
  hashed.erase("retain");  // unknown to older operators, whose hashes must stay valid
  return DigestOf(codec::DumpJson(hashed)).Short();
}

// True if the attempts start from 1 again: the settings changed since the last build, or a pod of a
// new revision was created after the builder of that build was elected. Pods created before that do
// not count: while pods of two revisions exist, each revision would otherwise reset the attempts of
// the other.
bool ShouldResetAttempts(const Builds& builds, const BuilderStatus& last,
                         const BuildTrigger& trigger) {
  const bool other_settings =
      !last.settings_hash.empty() && last.settings_hash != builds.settings_hash;
  return other_settings ||
         (last.revision != trigger.revision && trigger.created > last.elected_time);
}

bool MayBuild(const Context& context, Builds& builds, const BuilderStatus* last,
              const BuildTrigger& trigger) {
  if (last == nullptr || ShouldResetAttempts(builds, *last, trigger)) {
    return true;
  }
  if (last->bundles_suspended >= kSuspendedPerKeyMax) {
    return false;
  }
  const WallTime next = NextBuild(*last, context.in.warmup.spec.compile.backoff_limit);
  if (context.in.now < next) {
    builds.effects.RequeueAt(next);
    return false;
  }
  return true;
}

int NextAttempt(const Builds& builds, const BuilderStatus* last, const BuildTrigger& trigger) {
  if (last == nullptr || ShouldResetAttempts(builds, *last, trigger)) {
    return 1;
  }
  const bool lost = last->reason == reason::kBuilderLost && last->job.empty();
  return lost ? last->attempt : last->attempt + 1;
}

BuilderStatus& StartBuild(const Context& context, Builds& builds, const LiveKey& key,
                          const BuildTrigger& trigger) {
  BuilderStatus* present = FindBuilder(builds.builders, key.key);
  const int attempt = NextAttempt(builds, present, trigger);
  const int suspended = present == nullptr || ShouldResetAttempts(builds, *present, trigger)
                            ? 0
                            : present->bundles_suspended;
  if (present == nullptr) {
    present = &builds.builders.emplace_back();
  }
  *present = {.key = key.key,
              .gpu_type = key.factors.gpu_type,
              .cpu_class = key.factors.cpu_class,
              .image = key.factors.image,
              .revision = trigger.revision,
              .settings_hash = builds.settings_hash,
              .state = StateOf(FindTransition(BuildPhase::kNone, trigger.event).to),
              .attempt = attempt,
              .bundles_suspended = suspended,
              .elected_time = context.stamp()};
  return *present;
}

// ---- first pods ---------------------------------------------------------------------------------

// Returns the running pods of `key` that compiled (result miss or partial) although they started
// after `bundle` was published. Excludes the last builder.
std::vector<const PodView*> PodsThatMissed(const Context& context, const Builds& builds,
                                           const LiveKey& key, const api::BundleStatus& bundle) {
  const BuilderStatus* last = FindBuilder(builds.builders, key.key);
  std::vector<const PodView*> out = RunningPods(context, key.key);
  std::erase_if(out, [&](const PodView* pod) {
    const bool missed =
        pod->counted == api::StartResult::kMiss || pod->counted == api::StartResult::kPartial;
    const bool built = last != nullptr && last->pod_uid == pod->pod->meta.uid;
    return !missed || built || pod->container->started_time <= bundle.published_time;
  });
  return out;
}

// True if a bundle with files of a suspended one is active on the node.
bool HasSuspendedTree(const Bundles& bundles, const NodeState& node) {
  return node.reported != nullptr &&
         std::any_of(node.reported->bundles.begin(), node.reported->bundles.end(),
                     [&](const api::NodeBundle& each) {
                       return each.state == api::BundleState::kActive &&
                              bundles.HasSuspendedFiles(each.digest);
                     });
}

// Returns the running pods of `key` that may become the builder of a key without a bundle, earliest
// start first. Excludes pods that may have started with a bundle that is suspended now: their
// directories have its files, so a capture would publish them again.
std::vector<const PodView*> BuilderPods(const Context& context, const Builds& builds,
                                        const LiveKey& key) {
  std::vector<const PodView*> out = RunningPods(context, key.key);
  const api::SuspendedBundle* suspended = builds.bundles.LastSuspendedFor(key);
  std::erase_if(out, [&](const PodView* pod) {
    return suspended != nullptr &&
           (pod->container->started_time <= suspended->suspended_time ||
            HasSuspendedTree(builds.bundles, context.nodes[static_cast<size_t>(pod->node)]));
  });
  return out;
}

void ElectPod(const Context& context, Builds& builds, BuilderStatus& builder, const PodView& pod) {
  builder.pod_uid = pod.pod->meta.uid;
  builder.pod_name = pod.pod->meta.name;
  builder.node = pod.pod->node;
  builds.effects.RecordEvent(
      context.in.warmup, false, reason::kBuilderElected,
      fmt::format("pod {} on node {} builds the cache for {}, {} (attempt {})", builder.pod_name,
                  builder.node, builder.gpu_type, builder.cpu_class, builder.attempt));
}

// Reserves capacity for a held pod on a prepared node with the key's GPU type and CPU class.
// Returns false if no such node has capacity.
bool ReserveCapacity(const Context& context, Builds& builds, const LiveKey& key,
                     const PodView& pod) {
  const auto& nodes = context.targets[key.target].nodes;
  const auto fitting = std::find_if(nodes.begin(), nodes.end(), [&](size_t node) {
    return context.nodes[node].prepared && Fits(context, builds.reserved, node, *pod.shape);
  });
  if (fitting == nodes.end()) {
    return false;
  }
  Reserve(builds.reserved, *fitting, *pod.shape);
  return true;
}

// Elects as the builder the oldest held pod that at present fits a node with the key's GPU type and
// CPU class.
void ElectHeld(const Context& context, Builds& builds, const LiveKey& key,
               const BuilderStatus* last) {
  for (size_t i = 0; i < context.pods.size(); ++i) {
    const PodView& pod = context.pods[i];
    const bool taken = std::any_of(builds.candidates.begin(), builds.candidates.end(),
                                   [&](const BuilderCandidate& each) { return each.pod == i; });
    if (!pod.held || !pod.injected || pod.pod->meta.deleting || taken ||
        pod.factors != context.pod_template.factors || model::HasOtherGate(*pod.pod)) {
      continue;
    }
    const BuildTrigger trigger{.event = BuildEvent::kHeldPodElected,
                               .revision = pod.revision,
                               .created = pod.pod->meta.created};
    if (!MayBuild(context, builds, last, trigger) || !ReserveCapacity(context, builds, key, pod)) {
      continue;
    }
    builds.candidates.push_back({.pod = i, .target = key.target, .has_capacity = true});
    BuilderStatus& builder = StartBuild(context, builds, key, trigger);
    builder.pod_uid = pod.pod->meta.uid;
    builder.pod_name = pod.pod->meta.name;
    return;
  }
}

void ElectFirstPod(const Context& context, Builds& builds, const LiveKey& key,
                   const std::vector<const PodView*>& running) {
  const BuilderStatus* last = FindBuilder(builds.builders, key.key);
  for (const PodView* pod : running) {
    const BuildTrigger trigger{.event = BuildEvent::kPodElected,
                               .revision = pod->revision,
                               .created = pod->pod->meta.created};
    if (MayBuild(context, builds, last, trigger)) {
      BuilderStatus& builder = StartBuild(context, builds, key, trigger);
      ElectPod(context, builds, builder, *pod);
      FollowCapture(context, builds, builder);
      return;
    }
  }
}

void ElectJob(const Context& context, Builds& builds, const LiveKey& key) {
  const api::SuspendedBundle* suspended = builds.bundles.LastSuspendedFor(key);
  if (suspended != nullptr && context.in.now < suspended->suspended_time + kTreeReplacement) {
    builds.effects.RequeueAt(suspended->suspended_time + kTreeReplacement);
    return;
  }
  const BuilderStatus* last = FindBuilder(builds.builders, key.key);
  const BuildTrigger trigger{.event = BuildEvent::kJobElected,
                             .revision = JobRevision(context),
                             .created = context.in.now};
  if (MayMakeJob(context, builds, key) && MayBuild(context, builds, last, trigger)) {
    MakeJob(context, builds, key, StartBuild(context, builds, key, trigger));
  }
}

// Rebuilds a bundle that pods missed. A pod that missed it has compiled already, unless the next
// bundle must be proven, which only a Job can start.
void ElectForMissed(const Context& context, Builds& builds, const LiveKey& key,
                    const std::vector<const PodView*>& missed) {
  if (!NeedsProof(context.in.warmup.spec)) {
    ElectFirstPod(context, builds, key, missed);
  } else if (!missed.empty()) {
    ElectJob(context, builds, key);
  }
}

void ElectFor(const Context& context, Builds& builds, const LiveKey& key) {
  const BuilderStatus* last = FindBuilder(builds.builders, key.key);
  if (last != nullptr && IsRunning(*last)) {
    return;
  }
  if (const api::BundleStatus* bundle = builds.bundles.For(key)) {
    ElectForMissed(context, builds, key, PodsThatMissed(context, builds, key, *bundle));
    return;
  }
  if (UsesJob(context)) {
    ElectJob(context, builds, key);
    return;
  }
  const auto running = BuilderPods(context, builds, key);
  if (running.empty()) {
    ElectHeld(context, builds, key, last);
  } else {
    ElectFirstPod(context, builds, key, running);
  }
}

// ---- groups with several images -----------------------------------------------------------------

using GroupRevision = std::pair<std::string, std::string>;

GroupRevision GroupRevisionOf(const PodView& pod) {
  return {model::GroupOf(*pod.pod), pod.revision};
}

// Returns group and revision of all pods of the current template that belong to a group.
std::set<GroupRevision> GroupsOfTemplate(const Context& context) {
  std::set<GroupRevision> out;
  for (const PodView& pod : context.pods) {
    if (pod.injected && !pod.of_job && !pod.finished && !pod.pod->meta.deleting &&
        pod.factors == context.pod_template.factors) {
      out.insert(GroupRevisionOf(pod));
    }
  }
  std::erase_if(out, [](const GroupRevision& each) { return each.first.empty(); });
  return out;
}

// Elects builders for pods with another image or device count in the groups of the current
// template, such as the leader of a LeaderWorkerSet: no pod of the template has their key. Pods of
// other revisions are not elected, because their images are about to disappear. A pod without
// devices compiles nothing if the template's pods have some.
void ElectInGroups(const Context& context, Builds& builds) {
  if (UsesJob(context) || NeedsProof(context.in.warmup.spec)) {
    return;  // a Job runs the template, so it cannot build for another image
  }
  const std::set<GroupRevision> groups = GroupsOfTemplate(context);
  if (groups.empty()) {
    return;
  }
  for (const LiveKey& key : context.keys) {
    const BuilderStatus* last = FindBuilder(builds.builders, key.key);
    if (key.current || (key.factors.devices == 0 && context.pod_template.factors.devices > 0) ||
        (last != nullptr && IsRunning(*last)) || IsExhausted(context, builds.bundles, key, last)) {
      continue;
    }
    const api::BundleStatus* bundle = builds.bundles.For(key);
    std::vector<const PodView*> pods = bundle == nullptr
                                           ? BuilderPods(context, builds, key)
                                           : PodsThatMissed(context, builds, key, *bundle);
    std::erase_if(pods,
                  [&](const PodView* pod) { return !groups.contains(GroupRevisionOf(*pod)); });
    ElectFirstPod(context, builds, key, pods);
  }
}

// ---- builders that have not started -------------------------------------------------------------

void FollowCandidate(const Context& context, Builds& builds, const LiveKey& key,
                     BuilderStatus& builder) {
  if (const auto running = BuilderPods(context, builds, key); !running.empty()) {
    Advance(builder, BuildEvent::kContainerStarted);
    builder.revision = running.front()->revision;
    ElectPod(context, builds, builder, *running.front());
    FollowCapture(context, builds, builder);
    return;
  }
  const PodView* pod = FindPod(context, builder.pod_uid);
  if (pod == nullptr || pod->pod->meta.deleting || pod->finished) {
    FailBuild(context, builds.effects, builder,
              {.event = BuildEvent::kPodGone,
               .message = fmt::format("pod {} was deleted or ended before its container started",
                                      builder.pod_name)});
    return;
  }
  if (pod->held) {  // still held: its release was planned but not yet executed
    builds.candidates.push_back({.pod = static_cast<size_t>(pod - context.pods.data()),
                                 .target = key.target,
                                 .has_capacity = ReserveCapacity(context, builds, key, *pod)});
  }
  if (pod->node >= 0 &&
      context.nodes[static_cast<size_t>(pod->node)].target != static_cast<int>(key.target)) {
    FailBuild(
        context, builds.effects, builder,
        {.event = BuildEvent::kWrongNode,
         .message = fmt::format("pod {} was scheduled to node {}, which does not have the GPU "
                                "type and CPU class of the build",
                                builder.pod_name, pod->pod->node)});
    return;
  }
  EndAfterPending(context, builds.effects, builder,
                  {.since = builder.elected_time,
                   .subject = fmt::format("pod {}", builder.pod_name),
                   .reported = pod->container == nullptr ? "" : pod->container->message});
}

void Follow(const Context& context, Builds& builds, BuilderStatus& builder) {
  if (!builder.job.empty() && EndBlockingJob(context, builds, builder)) {
    return;
  }
  if (builder.captured && !builder.proof) {
    FollowRanks(context, builds, builder);
    return;
  }
  if (!builder.node.empty() && !builder.proof) {
    FollowCapture(context, builds, builder);
    return;
  }
  const auto key = std::find_if(context.keys.begin(), context.keys.end(),
                                [&](const LiveKey& each) { return each.key == builder.key; });
  const LiveKey* live = key == context.keys.end() ? nullptr : &*key;
  if (builder.proof) {
    FollowProof(context, builds, live, builder);
  } else if (!builder.job.empty()) {
    FollowJob(context, builds, live, builder);
  } else if (live == nullptr) {
    FailBuild(
        context, builds.effects, builder,
        {.event = BuildEvent::kKeyUnused,
         .message = "the build is obsolete: no pod uses the image of the build any more, or no "
                    "node with the GPU type and CPU class of the build is left"});
  } else {
    FollowCandidate(context, builds, *live, builder);
  }
}

// Fails all builds by Jobs while the warmup is paused, because Jobs occupy devices and count
// against builders.jobsMax. Builds by pods of the workload continue.
void FailRunningJobs(const Context& context, Builds& builds) {
  for (BuilderStatus& builder : builds.builders) {
    if (IsRunning(builder) && !builder.job.empty()) {
      FailBuild(context, builds.effects, builder,
                {.event = BuildEvent::kPaused,
                 .message = "the Job is deleted because spec.paused is set"});
    }
  }
  DeleteDoneJobs(context, builds);
}

}  // namespace

Builds DecideBuilders(const Context& context, const Acceptance& acceptance, BundleReview review) {
  Builds builds{.bundles = std::move(review.bundles),
                .builders = std::move(review.builders),
                .settings_hash = HashSettings(context.in.warmup.spec),
                .effects = std::move(review.effects)};
  if (context.deleting()) {
    for (const BuilderJob& job : context.in.jobs) {
      builds.jobs_to_delete.push_back(job.name);
    }
    return builds;
  }
  if (context.paused()) {
    FailRunningJobs(context, builds);
    DecideHarvests(context, acceptance, builds);
    return builds;
  }
  if (!NeedsProof(context.in.warmup.spec)) {
    builds.bundles.ForgetRefused();
  }
  // Iterate by index, because a call in the loop may add entries.
  for (size_t i = 0; i < builds.builders.size(); ++i) {
    if (BuilderStatus& builder = builds.builders[i]; IsRunning(builder)) {
      // A running build follows the current settings, so a change of settings during the build does
      // not reset its attempts.
      builder.settings_hash = builds.settings_hash;
      Follow(context, builds, builder);
    }
  }
  if (acceptance.inject) {
    for (const LiveKey& key : context.keys) {
      if (key.current) {
        ElectFor(context, builds, key);
      }
    }
    ElectInGroups(context, builds);
  }
  DecideHarvests(context, acceptance, builds);
  DeleteDoneJobs(context, builds);
  return builds;
}

}  // namespace cachewarm::plan
