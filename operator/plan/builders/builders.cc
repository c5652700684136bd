// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "operator/plan/builders/attempts.h"
#include "operator/plan/builders/election.h"
#include "operator/plan/builders/jobs.h"
#include "operator/plan/builders/proof.h"
#include "operator/plan/builders/publication.h"
#include "operator/plan/builders/transitions.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

using api::BuilderStatus;

namespace {

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
    ElectBuilders(context, builds);
  }
  DecideHarvests(context, acceptance, builds);
  DeleteDoneJobs(context, builds);
  return builds;
}

}  // namespace cachewarm::plan
