// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/builders/publication.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/api/reasons.h"
#include "operator/plan/builders/proof.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderStatus;

namespace {

// Fails a build that published a suspended bundle again: the same files have the same digest.
// Prevents further builds of the key, because they would produce the same bundle.
void RejectSuspended(const Context& context, Builds& builds, BuilderStatus& builder) {
  const std::string digest = builder.captured->digest.ToString();
  builder.bundles_suspended = kSuspendedPerKeyMax;
  FailBuild(context, builds.effects, builder,
            {.event = BuildEvent::kSuspendedAgain,
             .message = fmt::format("pod {} produced the suspended bundle {} again",
                                    builder.pod_name, digest)});
}

// True if other nodes may get the bundle only after a proof. A build that produced the published
// bundle again needs none.
bool MustProve(const Context& context, const Builds& builds, const BuilderStatus& builder) {
  const auto& bundles = builds.bundles.published();
  return NeedsProof(context.in.warmup.spec) && !builder.job.empty() &&
         std::none_of(bundles.begin(), bundles.end(), [&](const api::BundleStatus& each) {
           return each.key == builder.key && each.digest == builder.captured->digest;
         });
}

// Describes the capture and the proof behind a bundle, as the end of a clause.
std::string DescribeOrigin(const Context& context, const BuilderStatus& builder) {
  if (builder.proof && NeedsProof(context.in.warmup.spec)) {
    return fmt::format(" (started again by Job {} without compiling)", builder.proof->job);
  }
  return builder.ranks.size() > 1 ? fmt::format(" and its group of {} pods", builder.ranks.size())
                                  : std::string();
}

double SecondsSince(const Context& context, const BuilderStatus& builder) {
  return std::chrono::duration<double>(context.in.now - builder.elected_time).count();
}

// Ends the life of `builder`, whose state and reason are set, and returns its outcome.
BuildOutcome TakeOutcome(const Context& context, BuilderStatus& builder) {
  const double gpu_seconds = JobGpuSeconds(context, builder);
  builder.gpu_seconds = 0;
  builder.captured.reset();
  builder.proof.reset();
  return {.gpu_type = builder.gpu_type,
          .reason = builder.reason,
          .seconds = SecondsSince(context, builder),
          .gpu_seconds = gpu_seconds};
}

}  // namespace

double JobGpuSeconds(const Context& context, const BuilderStatus& builder) {
  const PodView* pod =
      FindPod(context, builder.proof.has_value() ? builder.proof->pod_uid : builder.pod_uid);
  if (builder.job.empty() || pod == nullptr || pod->container == nullptr ||
      pod->container->started_time == WallTime{}) {
    return builder.gpu_seconds;
  }
  const api::ContainerStatus& container = *pod->container;
  const WallTime end = container.terminated ? container.ended_time : context.in.now;
  const Duration ran = std::max(Duration(0), end - container.started_time);
  return builder.gpu_seconds + pod->factors.devices * std::chrono::duration<double>(ran).count();
}

void FailBuild(const Context& context, Effects& effects, BuilderStatus& builder,
               BuildFailure failure) {
  const BuildAction action = Advance(builder, failure.event).action;
  if (!failure.reason.empty()) {
    builder.reason = std::move(failure.reason);
  }
  builder.finished_time = context.stamp();
  builder.message = TruncateMessage(std::move(failure.message));
  BuildOutcome outcome = TakeOutcome(context, builder);
  if (action == BuildAction::kRetire) {
    return;
  }
  effects.builds_finished.push_back(std::move(outcome));
  effects.RecordEvent(context.in.warmup, true, builder.reason,
                      fmt::format("build attempt {} for {}, {} failed: {}", builder.attempt,
                                  builder.gpu_type, builder.cpu_class, builder.message));
}

bool EndAfterPending(const Context& context, Effects& effects, BuilderStatus& builder,
                     const PendingBuild& pending) {
  const int seconds = context.in.warmup.spec.compile.pending_seconds;
  const WallTime deadline = pending.since + std::chrono::seconds(seconds);
  if (context.in.now < deadline) {
    effects.RequeueAt(deadline);
    return false;
  }
  FailBuild(context, effects, builder,
            {.event = BuildEvent::kPendingTimeout,
             .message = fmt::format("{} did not start within compile.pendingSeconds ({} s){}{}",
                                    pending.subject, seconds, pending.reported.empty() ? "" : ": ",
                                    pending.reported)});
  return true;
}

bool EndRejectedJob(const Context& context, Effects& effects, BuilderStatus& builder,
                    const BuilderJob* job) {
  if (job == nullptr || !job->refused) {
    return false;
  }
  FailBuild(
      context, effects, builder,
      {.event = BuildEvent::kJobRejected,
       .message = fmt::format("the API server rejected Job {}: {}", job->name, job->message)});
  return true;
}

void CompleteBuild(const Context& context, Builds& builds, BuilderStatus& builder) {
  if (builds.bundles.FindSuspended(builder.captured->digest) != nullptr) {
    RejectSuspended(context, builds, builder);
  } else if (MustProve(context, builds, builder)) {
    BeginProof(context, builds, builder);
  } else {
    PublishBundle(context, builds, builder, BuildEvent::kAllCaptured);
  }
}

void PublishBundle(const Context& context, Builds& builds, BuilderStatus& builder,
                   BuildEvent event) {
  api::BundleStatus bundle{.key = builder.key,
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
                           .published_time = context.stamp(),
                           .factors = builder.captured->factors};
  builds.effects.RecordEvent(
      context.in.warmup, false, reason::kPublished,
      fmt::format("published {} files, {} bytes from pod {}{} for {}, {}: {}", bundle.files,
                  bundle.bytes, builder.pod_name, DescribeOrigin(context, builder),
                  builder.gpu_type, builder.cpu_class, bundle.digest.ToString()));
  Advance(builder, event);
  builds.effects.builds_finished.push_back(TakeOutcome(context, builder));
  builds.bundles.Publish(std::move(bundle));
}

}  // namespace cachewarm::plan
