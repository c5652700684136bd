// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/builders/proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "lib/api/reasons.h"
#include "operator/plan/builders/job_capacity.h"
#include "operator/plan/builders/jobs.h"
#include "operator/plan/builders/publication.h"
#include "operator/plan/decisions.h"
#include "operator/render/job.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderStatus;

namespace {

const NodeState* NodeOfBuilder(const Context& context, const BuilderStatus& builder) {
  const auto found = std::find_if(
      context.nodes.begin(), context.nodes.end(),
      [&](const NodeState& node) { return node.view->node->meta.name == builder.node; });
  return found == context.nodes.end() ? nullptr : &*found;
}

// Returns why the proof cannot end any more, which says nothing about the bundle; "" if it can.
std::string WhyLost(const Context& context, const LiveKey* key, const NodeState* node,
                    const BuilderStatus& builder) {
  // A proof whose pod has started continues: its bundle serves as a seed, and after a rollback.
  if (key == nullptr || (!key->current && builder.proof->pod_uid.empty())) {
    return "the proof is obsolete: no pod uses the image of the build any more, or no node with "
           "the GPU type and CPU class of the build is left";
  }
  if (node == nullptr) {
    return fmt::format("node {} is gone", builder.node);
  }
  if (node->target >= 0 && node->target != static_cast<int>(key->target)) {
    return fmt::format("node {} does not have the GPU type and CPU class of the build any more",
                       builder.node);
  }
  const std::string& uid = builder.proof->pod_uid;
  const PodView* pod = FindPod(context, uid);
  if (!uid.empty() && (pod == nullptr || pod->pod->meta.deleting)) {
    return fmt::format("the pod of Job {} was deleted before it was ready", builder.proof->job);
  }
  return "";
}

// Returns what the Job of the proof waits for before it is requested; "" if nothing is left. The
// Job of the build has the device that the proof needs. A Job with the name of the proof is a
// leftover of an earlier attempt with the same number.
std::string WhyNotRequested(const Context& context, const NodeState& node,
                            const BuilderStatus& builder) {
  if (FindJob(context, builder.job) != nullptr || PodOfJob(context, builder.job) != nullptr) {
    return fmt::format("Job {} of the build still exists", builder.job);
  }
  const std::string name =
      render::ProofJobName(context.in.warmup.name, builder.key, builder.attempt);
  if (FindJob(context, name) != nullptr) {
    return fmt::format("an earlier Job {} still exists", name);
  }
  const api::NodeBundle* reported = ReportedBundle(node, builder.captured->digest);
  if (reported != nullptr && reported->state == api::BundleState::kFailed) {
    return fmt::format("the node failed to activate the bundle: {}", reported->message);
  }
  return node.prepared && IsActive(node, builder.captured->digest)
             ? ""
             : "the node has not activated the bundle yet";
}

// Fails the build if the container of the proof has not started in time; `why` is the cause.
void AwaitProofPod(const Context& context, Builds& builds, const std::string& reported,
                   BuilderStatus& builder) {
  EndAfterPending(context, builds.effects, builder,
                  {.since = builder.proof->started_time,
                   .subject = fmt::format("the proof of bundle {} on node {}",
                                          builder.captured->digest.ToString(), builder.node),
                   .reported = reported});
}

void RequestProof(const Context& context, Builds& builds, const NodeState& node,
                  BuilderStatus& builder) {
  RequestJob(context, builds, {static_cast<size_t>(&node - context.nodes.data())}, builder);
  builds.effects.RequeueAt(builder.proof->requested_time + kJobStartGrace);
}

std::string DescribeProofPod(const Context& context, const BuilderStatus& builder) {
  std::string variables;
  for (const api::EnvVar& variable : context.workload.strict_env) {
    variables +=
        fmt::format("{}{}={}", variables.empty() ? "" : " ", variable.name, variable.value);
  }
  return fmt::format("Job {} on node {} ({})", builder.proof->job, builder.node, variables);
}

// Refuses the bundle if the container ended, or was not ready in time.
void CheckProofPod(const Context& context, Builds& builds, const PodView& pod,
                   BuilderStatus& builder) {
  const api::ContainerStatus& container = *pod.container;
  const std::string& words = container.message;  // begins with the exit code once it has ended
  if (container.terminated && !HasSucceeded(pod)) {
    RefuseBundle(
        context, builds, builder,
        fmt::format("{} ended before it was ready: {}", DescribeProofPod(context, builder), words));
    return;
  }
  const int seconds = context.in.warmup.spec.compile.timeout_seconds;
  const WallTime deadline = container.started_time + std::chrono::seconds(seconds);
  if (context.in.now >= deadline) {
    RefuseBundle(context, builds, builder,
                 fmt::format("{} was not ready {} s after its container started "
                             "(compile.timeoutSeconds){}",
                             DescribeProofPod(context, builder), seconds,
                             words.empty() ? "" : ": " + words));
    return;
  }
  builds.effects.RequeueAt(deadline);
  builds.effects.RequeueAt(ReadyLaterAt(context, pod));
}

void FollowProofPod(const Context& context, Builds& builds, const PodView& pod,
                    BuilderStatus& builder) {
  if (builder.proof->pod_uid.empty()) {
    builder.proof->pod_uid = pod.pod->meta.uid;
    builds.effects.RecordEvent(
        context.in.warmup, false, reason::kProofStarted,
        fmt::format("{} starts with bundle {}; other nodes get the bundle once it is ready",
                    DescribeProofPod(context, builder), builder.captured->digest.ToString()));
  }
  const bool answered = FollowBuildRequests(context, builds, pod, builder);
  if (!builder.proof) {
    return;  // a request failed, so the bundle is refused
  }
  if (answered && ReadyAt(context, pod) != WallTime{}) {
    PublishBundle(context, builds, builder, BuildEvent::kProven);
  } else {
    CheckProofPod(context, builds, pod, builder);
  }
}

}  // namespace

void BeginProof(const Context& context, Builds& builds, BuilderStatus& builder) {
  Advance(builder, BuildEvent::kMustProve);
  builder.gpu_seconds = JobGpuSeconds(context, builder);
  builder.proof = api::ProofStatus{.started_time = context.stamp()};
  AwaitProofPod(context, builds, "", builder);
}

void FollowProof(const Context& context, Builds& builds, const LiveKey* key,
                 BuilderStatus& builder) {
  if (!NeedsProof(context.in.warmup.spec)) {
    PublishBundle(context, builds, builder, BuildEvent::kProofDropped);
    return;
  }
  const NodeState* node = NodeOfBuilder(context, builder);
  if (const std::string why = WhyLost(context, key, node, builder); !why.empty()) {
    FailBuild(context, builds.effects, builder, {.event = BuildEvent::kProofLost, .message = why});
    return;
  }
  api::ProofStatus& proof = *builder.proof;
  if (proof.job.empty()) {
    if (const std::string why = WhyNotRequested(context, *node, builder); !why.empty()) {
      AwaitProofPod(context, builds, why, builder);
      return;
    }
    proof.job = render::ProofJobName(context.in.warmup.name, builder.key, builder.attempt);
    proof.requested_time = context.stamp();
  }
  const PodView* pod = PodOfJob(context, proof.job);
  if (pod != nullptr && pod->node >= 0 && HasStarted(*pod)) {
    FollowProofPod(context, builds, *pod, builder);
    return;
  }
  const BuilderJob* job = FindJob(context, proof.job);
  if (EndRejectedJob(context, builds.effects, builder, job)) {
    return;
  }
  if (job != nullptr && job->failed && !job->deleting) {
    FailBuild(context, builds.effects, builder,
              {.event = BuildEvent::kJobFailed,
               .message = fmt::format("the pod of Job {} ended before its container started: {}",
                                      job->name, TerminationMessage(pod, job->message))});
    return;
  }
  if (job == nullptr) {
    RequestProof(context, builds, *node, builder);
  }
  AwaitProofPod(context, builds, TerminationMessage(pod, "its pod was not scheduled"), builder);
}

void RefuseBundle(const Context& context, Builds& builds, BuilderStatus& builder,
                  const std::string& why) {
  builds.bundles.Suspend(
      {.key = builder.key,
       .digest = builder.captured->digest,
       .gpu_type = builder.gpu_type,
       .cpu_class = builder.cpu_class,
       .image = builder.image,
       .native = builder.captured->native,
       .suspended_time = context.stamp(),
       .hung_starts = {},
       .message = TruncateMessage(
           fmt::format("bundle {} is suspended because its engine refused it (spec.compile.proof). "
                       "New pods start without it. To publish bundles without a proof, remove "
                       "spec.compile.proof. {}",
                       builder.captured->digest.ToString(), why))});
  ++builder.bundles_suspended;
  FailBuild(context, builds.effects, builder, {.event = BuildEvent::kProofRefused, .message = why});
}

}  // namespace cachewarm::plan
