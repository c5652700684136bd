// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/building/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/base/digest.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/plan/building/job_room.h"
#include "operator/plan/decisions.h"
#include "operator/plan/gates/places.h"
#include "operator/plan/scheduling/requests.h"
#include "operator/render/job.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderStatus;

namespace {

constexpr size_t kHostnamesMax = 64;  // of a Job: one of them takes its pod

const BuilderJob* FindJob(const Round& round, const std::string& name) {
  const auto found = std::find_if(round.in.jobs.begin(), round.in.jobs.end(),
                                  [&](const BuilderJob& job) { return job.name == name; });
  return found == round.in.jobs.end() ? nullptr : &*found;
}

bool IsThere(const Round& round, const std::string& name) {
  const BuilderJob* job = FindJob(round, name);
  return job != nullptr && !job->refused;
}

std::string LastWords(const PodView* pod, const std::string& job_message) {
  const bool says = pod != nullptr && pod->container != nullptr && !pod->container->message.empty();
  return says ? pod->container->message : job_message;
}

// The start of a captured builder is what savings are measured against: its pod stays until that is
// counted, which DecideStarts() does soon after Ready, with or without the agent's word.
bool IsToBeCounted(const Round& round, const BuilderJob& job) {
  const auto& builders = round.out.status.builders;
  const bool captured = std::any_of(builders.begin(), builders.end(), [&](const auto& each) {
    return each.state == api::BuilderState::kCaptured && each.job == job.name;
  });
  const PodView* pod = captured ? PodOfJob(round, job.name) : nullptr;
  return pod != nullptr && pod->ours && !pod->counted && !pod->pod->meta.deleting &&
         pod->node >= 0 && ReadyAt(round, *pod) != WallTime{};
}

void WishJob(Round& round, const LiveKey& key, const JobNodes& nodes,
             const BuilderStatus& builder) {
  const auto pod_template = TemplateOfJob(round);
  if (!pod_template.ok()) {
    return;  // was looked at before the Job was named; it runs out of time if it changed since
  }
  render::BuilderJobSpec spec{.warmup = round.in.warmup,
                              .pod_template = *pod_template,
                              .key = key.key,
                              .attempt = builder.attempt,
                              .mount = {.container = round.pod_template.factors.container,
                                        .host_path = HostPath(round, round.pod_template.run_as),
                                        .env = round.env},
                              .hostnames = Hostnames(round, nodes.nodes, kHostnamesMax),
                              .priority_class = round.in.settings.builder_priority_class};
  for (const auto& [label, value] : round.in.workload.selector) {
    spec.label_keys.insert(label);
  }
  spec.label_keys.insert(round.in.selected_label_keys.begin(), round.in.selected_label_keys.end());
  round.out.jobs_to_create.push_back(
      {.name = builder.job,
       .object = std::make_shared<const codec::Json>(render::BuilderJob(spec))});
}

}  // namespace

bool UsesJob(const Round& round) {
  switch (round.in.warmup.spec.compile.builder) {
    case api::Builder::kJob:
      return true;
    case api::Builder::kFirstPod:
      return false;
    case api::Builder::kAuto:
      break;
  }
  const Workload& workload = round.in.workload;
  return workload.kind == WorkloadKind::kTemplate ||
         (workload.kind != WorkloadKind::kSelector && workload.kind != WorkloadKind::kGroup &&
          workload.replicas == 0);
}

std::string RevisionOfJob(const Round& round) {
  const api::CompileSpec& compile = round.in.warmup.spec.compile;
  if (compile.overrides == nullptr && compile.requests.empty()) {
    return round.pod_template.revision;
  }
  api::WarmupSpec asked;
  asked.compile.overrides = compile.overrides;
  asked.compile.requests = compile.requests;
  const codec::Json ours = api::EncodeSpec(asked)["compile"];
  return "t-" + DigestOf(round.pod_template.revision + codec::DumpJson(ours)).Short();
}

void MakeJob(Round& round, const LiveKey& key, BuilderStatus& builder) {
  const auto name = [&] {
    return render::BuilderJobName(round.in.warmup.name, key.key, builder.attempt);
  };
  while (IsThere(round, name())) {  // where the count starts afresh, the last Job may still be
    ++builder.attempt;
  }
  builder.job = name();
  const JobNodes nodes = NodesByRoom(round, key);
  if (nodes.has_room) {
    Take(round, nodes.nodes.front(), ShapeOfJob(round));
  }
  WishJob(round, key, nodes, builder);
}

bool GiveWay(Round& round, BuilderStatus& builder) {
  const std::string why = WhyGiveWay(round, PodOfJob(round, builder.job));
  if (!why.empty()) {
    FailBuild(round, builder, reason::kBuilderLost, why);
  }
  return !why.empty();
}

void FollowJob(Round& round, const LiveKey* key, BuilderStatus& builder) {
  if (key == nullptr) {
    FailBuild(round, builder, reason::kBuilderLost,
              "the image or the nodes that it was made for are gone");
    return;
  }
  const BuilderJob* job = FindJob(round, builder.job);
  const PodView* pod = PodOfJob(round, builder.job);
  const bool has_started = pod != nullptr && pod->container != nullptr &&
                           (pod->container->running || HasExitedWell(*pod));
  if (has_started && pod->node >= 0) {
    builder.pod_uid = pod->pod->meta.uid;
    builder.pod_name = pod->pod->meta.name;
    builder.node = pod->pod->node;
    Tell(round, false, reason::kBuilderElected,
         fmt::format("Job {} compiles on node {} for {}, {} (attempt {})", builder.job,
                     builder.node, builder.gpu_type, builder.cpu_class, builder.attempt));
    FollowCapture(round, builder);
    return;
  }
  if (job != nullptr && job->refused) {
    FailBuild(round, builder, reason::kBuilderRefused,
              fmt::format("the API server refuses Job {}: {}", job->name, job->message));
    return;
  }
  if (job != nullptr && job->failed && !job->deleting) {
    FailBuild(round, builder, reason::kBuilderCrashed, LastWords(pod, job->message));
    return;
  }
  const Duration pending = std::chrono::seconds(round.in.warmup.spec.compile.pending_seconds);
  if (round.in.now >= builder.elected_time + pending) {
    FailBuild(round, builder, reason::kBuilderPending,
              fmt::format("Job {} has not started within compile.pendingSeconds ({} s): {}",
                          builder.job, round.in.warmup.spec.compile.pending_seconds,
                          LastWords(pod, "no node took its pod")));
    return;
  }
  WakeAt(round, builder.elected_time + pending);
  if (round.in.now < builder.elected_time + kJobsTurn) {
    WakeAt(round, builder.elected_time + kJobsTurn);
  }
  // Made again where the create was lost; AlreadyExists is success. One that is being deleted keeps
  // the name until it is gone.
  if (job == nullptr) {
    WishJob(round, *key, NodesByRoom(round, *key), builder);
  }
}

void DeleteDoneJobs(Round& round) {
  for (const BuilderJob& job : round.in.jobs) {
    const auto& builders = round.out.status.builders;
    const bool runs = std::any_of(builders.begin(), builders.end(), [&](const auto& each) {
      return IsRunning(each) && each.job == job.name;
    });
    if (!runs && !job.deleting && !job.refused && !IsToBeCounted(round, job)) {
      round.out.jobs_to_delete.push_back(job.name);
    }
  }
}

}  // namespace cachewarm::plan
