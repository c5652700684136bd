// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/builders/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/base/digest.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/model/resource_requests.h"
#include "operator/plan/builders/job_capacity.h"
#include "operator/plan/builders/publication.h"
#include "operator/plan/decisions.h"
#include "operator/plan/gates/candidate_nodes.h"
#include "operator/render/job.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderStatus;

namespace {

constexpr size_t kHostnamesMax = 64;  // maximum number of nodes that the pod of one Job may use

bool JobExists(const Context& context, const std::string& name) {
  const BuilderJob* job = FindJob(context, name);
  return job != nullptr && !job->refused;
}

// True if the Job's pod is a captured builder whose first start is not counted yet. Savings are
// measured against that start, so the pod must stay until the start is counted; DecideStarts()
// counts it soon after Ready, even if the agent reports nothing about it.
bool AwaitsStartCount(const Context& context, const Builds& builds, const BuilderJob& job) {
  const auto& builders = builds.builders;
  const bool captured = std::any_of(builders.begin(), builders.end(), [&](const auto& each) {
    const bool is_captured =
        each.state == api::BuilderState::kCaptured || each.state == api::BuilderState::kProving;
    return is_captured && each.job == job.name;
  });
  const PodView* pod = captured ? PodOfJob(context, job.name) : nullptr;
  return pod != nullptr && pod->injected && !pod->counted && !pod->pod->meta.deleting &&
         pod->node >= 0 && ReadyAt(context, *pod) != WallTime{};
}

}  // namespace

const BuilderJob* FindJob(const Context& context, const std::string& name) {
  const auto found = std::find_if(context.in.jobs.begin(), context.in.jobs.end(),
                                  [&](const BuilderJob& job) { return job.name == name; });
  return found == context.in.jobs.end() ? nullptr : &*found;
}

std::string TerminationMessage(const PodView* pod, const std::string& job_message) {
  const bool says = pod != nullptr && pod->container != nullptr && !pod->container->message.empty();
  return says ? pod->container->message : job_message;
}

void RequestJob(const Context& context, Builds& builds, const std::vector<size_t>& nodes,
                const BuilderStatus& builder) {
  const auto pod_template = TemplateOfJob(context);
  if (!pod_template.ok()) {
    return;  // MayMakeJob() has checked the template; if it changed since, the build times out
  }
  render::BuilderJobSpec spec{.warmup = context.in.warmup,
                              .pod_template = *pod_template,
                              .key = builder.key,
                              .attempt = builder.attempt,
                              .mount = {.container = context.pod_template.factors.container,
                                        .host_path = HostPath(context, context.pod_template.run_as),
                                        .env = context.workload.env},
                              .hostnames = Hostnames(context, nodes, kHostnamesMax),
                              .priority_class = context.in.settings.builder_priority_class};
  if (builder.proof) {
    spec.strict_env = context.workload.strict_env;
  }
  for (const auto& [label, value] : context.in.workload.selector) {
    spec.label_keys.insert(label);
  }
  spec.label_keys.insert(context.in.selected_label_keys.begin(),
                         context.in.selected_label_keys.end());
  builds.jobs_to_create.push_back(
      {.name = api::CurrentJob(builder),
       .object = std::make_shared<const codec::Json>(render::BuilderJob(spec))});
}

bool UsesJob(const Context& context) {
  switch (context.in.warmup.spec.compile.builder) {
    case api::Builder::kJob:
      return true;
    case api::Builder::kFirstPod:
      return false;
    case api::Builder::kAuto:
      break;
  }
  const Workload& workload = context.in.workload;
  return workload.kind == WorkloadKind::kTemplate ||
         (workload.kind != WorkloadKind::kSelector && workload.kind != WorkloadKind::kGroup &&
          workload.replicas == 0);
}

std::string JobRevision(const Context& context) {
  const api::CompileSpec& compile = context.in.warmup.spec.compile;
  if (!compile.overrides.has_value() && compile.requests.empty()) {
    return context.pod_template.revision;
  }
  api::WarmupSpec build_spec;
  build_spec.compile.overrides = compile.overrides;
  build_spec.compile.requests = compile.requests;
  const codec::Json compile_spec = api::EncodeSpec(build_spec)["compile"];
  return "t-" + DigestOf(context.pod_template.revision + codec::DumpJson(compile_spec)).Short();
}

void MakeJob(const Context& context, Builds& builds, const LiveKey& key, BuilderStatus& builder) {
  const auto name = [&] {
    return render::BuilderJobName(context.in.warmup.name, key.key, builder.attempt);
  };
  // The attempts may have restarted from 1 while an earlier Job of that name still exists.
  while (JobExists(context, name())) {
    ++builder.attempt;
  }
  builder.job = name();
  const JobNodes nodes = NodesByCapacity(context, builds.reserved, key);
  if (nodes.has_capacity) {
    Reserve(builds.reserved, nodes.nodes.front(), ShapeOfJob(context));
  }
  RequestJob(context, builds, nodes.nodes, builder);
}

bool EndBlockingJob(const Context& context, Builds& builds, BuilderStatus& builder) {
  const std::string why = BlockingReason(context, PodOfJob(context, api::CurrentJob(builder)),
                                         builds.reserved, builds.effects);
  if (!why.empty()) {
    FailBuild(context, builds.effects, builder,
              {.event = BuildEvent::kWorkloadBlocked, .message = why});
  }
  return !why.empty();
}

void FollowJob(const Context& context, Builds& builds, const LiveKey* key, BuilderStatus& builder) {
  if (key == nullptr) {
    FailBuild(
        context, builds.effects, builder,
        {.event = BuildEvent::kKeyUnused,
         .message =
             "the build is obsolete: no pod uses the image of the build any more, or no node with "
             "the GPU type and CPU class of the build is left"});
    return;
  }
  const BuilderJob* job = FindJob(context, builder.job);
  const PodView* pod = PodOfJob(context, builder.job);
  const bool has_started = pod != nullptr && pod->container != nullptr &&
                           (pod->container->running || HasSucceeded(*pod));
  if (has_started && pod->node >= 0) {
    Advance(builder, BuildEvent::kContainerStarted);
    builder.pod_uid = pod->pod->meta.uid;
    builder.pod_name = pod->pod->meta.name;
    builder.node = pod->pod->node;
    builds.effects.RecordEvent(
        context.in.warmup, false, reason::kBuilderElected,
        fmt::format("Job {} on node {} builds the cache for {}, {} (attempt {})", builder.job,
                    builder.node, builder.gpu_type, builder.cpu_class, builder.attempt));
    FollowCapture(context, builds, builder);
    return;
  }
  if (EndRejectedJob(context, builds.effects, builder, job)) {
    return;
  }
  if (job != nullptr && job->failed && !job->deleting) {
    FailBuild(context, builds.effects, builder,
              {.event = BuildEvent::kJobFailed, .message = TerminationMessage(pod, job->message)});
    return;
  }
  if (EndAfterPending(context, builds.effects, builder,
                      {.since = builder.elected_time,
                       .subject = fmt::format("Job {}", builder.job),
                       .reported = TerminationMessage(pod, "its pod was not scheduled")})) {
    return;
  }
  if (context.in.now < builder.elected_time + kJobStartGrace) {
    builds.effects.RequeueAt(builder.elected_time + kJobStartGrace);
  }
  // No Job exists: request it again, because the first create may have been lost. AlreadyExists is
  // success. A Job that is being deleted still occupies the name (`job` is set), so nothing is
  // requested until that Job is gone.
  if (job == nullptr) {
    RequestJob(context, builds, NodesByCapacity(context, builds.reserved, *key).nodes, builder);
  }
}

void DeleteDoneJobs(const Context& context, Builds& builds) {
  for (const BuilderJob& job : context.in.jobs) {
    const auto& builders = builds.builders;
    const bool runs = std::any_of(builders.begin(), builders.end(), [&](const auto& each) {
      return IsRunning(each) && api::CurrentJob(each) == job.name;
    });
    if (!runs && !job.deleting && !job.refused && !AwaitsStartCount(context, builds, job)) {
      builds.jobs_to_delete.push_back(job.name);
    }
  }
}

}  // namespace cachewarm::plan
