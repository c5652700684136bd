// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/builder_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "lib/api/gate/release.h"
#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/base/digest.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/plan/decisions.h"
#include "operator/plan/gates/groups.h"
#include "operator/plan/gates/places.h"
#include "operator/plan/scheduling/requests.h"
#include "operator/plan/scheduling/shape.h"
#include "operator/render/fields.h"
#include "operator/render/job.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderStatus;

namespace {

constexpr Duration kLookAgain = std::chrono::seconds(30);
// A pod that no node has after this long was looked at by the scheduler.
constexpr Duration kSchedulersTurn = std::chrono::seconds(2);
// The same for the pod of a Job, which has to be made first.
constexpr Duration kJobsTurn = std::chrono::seconds(5);
// A pod that has not started after this long may wait for a volume.
constexpr Duration kVolumesTurn = std::chrono::seconds(15);

std::vector<size_t> NodesFor(const Round& round, const LiveKey& key) {
  std::vector<size_t> out;
  for (const size_t index : round.targets[key.target].nodes) {
    const NodeState& node = round.nodes[index];
    if (node.possible && node.ready && node.prepared) {
      out.push_back(index);
    }
  }
  return out;
}

int JobsRunning(const Round& round) {
  const auto& builders = round.out.status.builders;
  return round.in.builder_jobs_elsewhere +
         static_cast<int>(std::count_if(builders.begin(), builders.end(), [](const auto& each) {
           return IsRunning(each) && !each.job.empty();
         }));
}

bool Refuse(Round& round, std::string why) {
  round.job_refusal = std::move(why);
  WakeAt(round, round.in.now + kLookAgain);
  return false;
}

const BuilderJob* FindJob(const Round& round, const std::string& name) {
  const auto found = std::find_if(round.in.jobs.begin(), round.in.jobs.end(),
                                  [&](const BuilderJob& job) { return job.name == name; });
  return found == round.in.jobs.end() ? nullptr : &*found;
}

const PodView* PodOf(const Round& round, const std::string& job) {
  for (const PodView& pod : round.pods) {
    const auto& labels = pod.pod->meta.labels;
    auto name = labels.find("batch.kubernetes.io/job-name");
    name = name == labels.end() ? labels.find("job-name") : name;
    if (pod.of_job && name != labels.end() && name->second == job) {
      return &pod;
    }
  }
  return nullptr;
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
  const PodView* pod = captured ? PodOf(round, job.name) : nullptr;
  return pod != nullptr && pod->ours && !pod->counted && !pod->pod->meta.deleting &&
         pod->node >= 0 && ReadyAt(round, *pod) != WallTime{};
}

absl::StatusOr<codec::Json> TemplateOfJob(const Round& round) {
  return render::WithOverrides(*round.pod_template.pod_template,
                               round.in.warmup.spec.compile.overrides.get(),
                               round.pod_template.factors.container);
}

// What a Job's pod takes of a node: overrides may ask for more, or less, than the workload.
PodShape ShapeOfJob(const Round& round) {
  const auto pod_template = TemplateOfJob(round);
  const codec::Json* spec = pod_template.ok() ? render::Find(*pod_template, {"spec"}) : nullptr;
  return spec == nullptr ? round.pod_template.shape : ShapeOf(*spec);
}

bool IsOfTheUsers(const PodView& pod) {
  return !pod.of_job && !pod.finished && !pod.pod->meta.deleting;
}

// Pods of the workload that no node has yet, and those that it is about to make.
int64_t PodsWithoutANode(const Round& round) {
  int64_t bound = 0;
  int64_t unbound = 0;
  for (const PodView& pod : round.pods) {
    if (IsOfTheUsers(pod)) {
      ++(pod.pod->node.empty() ? unbound : bound);
    }
  }
  return std::max(unbound, round.in.promises.pods_most - bound);
}

// Books room for so many pods of the workload on nodes of this target, or on all others; returns
// how many found none.
int64_t Book(Round& round, int64_t pods, size_t target, bool others) {
  const PodShape& shape = round.pod_template.shape;
  for (size_t i = 0; i < round.nodes.size(); ++i) {
    const NodeState& node = round.nodes[i];
    const bool is_meant = (node.target != static_cast<int>(target)) == others && node.possible;
    for (; is_meant && pods > 0 && CanTake(round, i, shape); --pods) {
      Take(round, i, shape);
    }
  }
  return pods;
}

// Nodes of the key, those first that have room for a Job's pod beside all pods of the workload.
struct JobNodes {
  std::vector<size_t> nodes;
  bool has_room = false;  // the first of them
};

JobNodes NodesByRoom(Round& round, const LiveKey& key) {
  const PodShape shape = ShapeOfJob(round);
  const auto taken = round.taken;
  Book(round, Book(round, PodsWithoutANode(round), key.target, true), key.target, false);
  JobNodes out{.nodes = NodesFor(round, key)};
  const auto full = std::stable_partition(out.nodes.begin(), out.nodes.end(),
                                          [&](size_t node) { return CanTake(round, node, shape); });
  out.has_room = full != out.nodes.begin();
  round.taken = taken;
  return out;
}

// Room on the Job's own node is all that one pod of the workload needs to start.
bool IsInTheWay(const Round& round, const PodView& job_pod) {
  const PodShape& shape = round.pod_template.shape;
  for (size_t i = 0; i < round.nodes.size(); ++i) {
    if (round.nodes[i].possible && CanTake(round, i, shape)) {
      return false;
    }
  }
  const NodeState& node = round.nodes[static_cast<size_t>(job_pod.node)];
  Resources room = node.view->free;
  for (const auto& [name, amount] : job_pod.pod->requests) {
    room[name] += amount;
  }
  ++room["pods"];
  return node.possible && Holds(room, shape.requests);
}

// A pod of the workload that the scheduler looked at and has no room for; nullptr for none. Most
// take it by preemption; those whose class forbids that would wait.
const PodView* PodWithoutRoom(Round& round) {
  for (const PodView& pod : round.pods) {
    if (IsOfTheUsers(pod) && pod.pod->node.empty() && pod.pod->gates.empty()) {
      const WallTime looked_at = pod.pod->meta.created + kSchedulersTurn;
      if (round.in.now >= looked_at) {
        return &pod;
      }
      WakeAt(round, looked_at);
    }
  }
  return nullptr;
}

// Of pods that mount a claim with the Job's: which kind of claim it is we may not read, and it
// could be one that a single node, or a single pod, has at a time. A pod of the workload, on no
// node or another than the Job's, that has had `patience` and no containers; nullptr for none.
const PodView* PodThatMayLackAClaim(Round& round, Duration patience, int job_node) {
  const auto& pod_template = round.pod_template.pod_template;
  if (pod_template == nullptr || !render::SharesAClaim(*pod_template)) {
    return nullptr;
  }
  for (const PodView& pod : round.pods) {
    if (!IsOfTheUsers(pod) || !pod.pod->gates.empty() || HasStarted(pod) ||
        (pod.node >= 0 && pod.node == job_node)) {
      continue;
    }
    const std::chrono::duration<double> held(api::gate::NotedHoldSeconds(*pod.pod));
    const WallTime due =
        pod.pod->meta.created + std::chrono::duration_cast<Duration>(held) + patience;
    if (round.in.now >= due) {
      return &pod;
    }
    WakeAt(round, due);
  }
  return nullptr;
}

// Why the Job has to end before it has compiled; "" when it may go on.
std::string WhyGiveWay(Round& round, const PodView* job_pod) {
  if (round.in.promises.quota_exceeded) {
    return "a pod of the workload could not be made within the quota of the namespace";
  }
  if (job_pod == nullptr || job_pod->node < 0) {
    return "";
  }
  if (const PodView* pod = PodThatMayLackAClaim(round, kVolumesTurn, job_pod->node)) {
    return fmt::format(
        "pod {} of the workload has not started and may wait for a claim that both mount",
        pod->pod->meta.name);
  }
  if (!IsInTheWay(round, *job_pod)) {
    return "";
  }
  const PodView* pod = PodWithoutRoom(round);
  return pod == nullptr
             ? ""
             : fmt::format("pod {} of the workload finds no other room", pod->pod->meta.name);
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
                              .hostnames = Hostnames(round, nodes.nodes),
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

bool MayMakeJob(Round& round, const LiveKey& key) {
  if (round.in.workload.kind == WorkloadKind::kSelector) {
    return Refuse(round,
                  "a builder Job needs a template; name a workload in spec.workloadRef, or "
                  "set compile.builder to FirstPod");
  }
  if (round.in.workload.kind == WorkloadKind::kGroup) {
    return Refuse(round,
                  "no builder Job is made: a pod of a group does not start without the others; set "
                  "compile.builder to FirstPod");
  }
  if (round.in.promises.quota_exceeded) {
    return Refuse(round,
                  "no builder Job is made: a pod of the workload waits for room in the quota of "
                  "the namespace");
  }
  const auto pod_template = TemplateOfJob(round);
  if (!pod_template.ok()) {
    return Refuse(round, "no builder Job is made: " + Message(pod_template.status()));
  }
  if (const std::string refusal = render::CopyRefusal(*pod_template); !refusal.empty()) {
    return Refuse(round, "no builder Job is made: " + refusal);
  }
  const api::Pod copy = AsPod(std::make_shared<const codec::Json>(*pod_template));
  if (const std::string group = GroupOf(copy); !group.empty() || IsOfUnknownGang(copy)) {
    return Refuse(round,
                  fmt::format("no builder Job is made: the pod template is marked as of {}, and a "
                              "copy would wait for the others or count as one of them; set "
                              "compile.builder to FirstPod",
                              group.empty() ? "a gang" : "the group " + group));
  }
  if (const PodView* pod = PodThatMayLackAClaim(round, Duration{0}, -1)) {
    return Refuse(round,
                  fmt::format("no builder Job is made: pod {} of the workload has not started and "
                              "may wait for a claim that a copy would mount too",
                              pod->pod->meta.name));
  }
  const codec::Json* container = render::Named(render::List(*pod_template, {"spec", "containers"}),
                                               round.pod_template.factors.container);
  if (container == nullptr || AcceleratorsOf(*container) != round.pod_template.factors.devices) {
    return Refuse(round,
                  "no builder Job is made: compile.overrides: the devices of the container "
                  "that compiles must stay; another number compiles another cache");
  }
  const int jobs_max = round.in.settings.builder_jobs_max;
  if (jobs_max == 0) {
    return Refuse(round, "the operator makes no builder Jobs (builders.jobsMax is 0)");
  }
  if (JobsRunning(round) >= jobs_max) {
    return Refuse(round, fmt::format("{} builder Jobs are running in the cluster, as many as "
                                     "builders.jobsMax allows; waiting for one to end",
                                     jobs_max));
  }
  if (!NodesByRoom(round, key).has_room) {
    return Refuse(round, fmt::format("no node of {}, {} has room for a builder; waiting",
                                     key.factors.gpu_type, key.factors.cpu_class));
  }
  return true;
}

void MakeJob(Round& round, const LiveKey& key, BuilderStatus& builder) {
  builder.job = render::BuilderJobName(round.in.warmup.name, key.key, builder.attempt);
  const JobNodes nodes = NodesByRoom(round, key);
  if (nodes.has_room) {
    Take(round, nodes.nodes.front(), ShapeOfJob(round));
  }
  WishJob(round, key, nodes, builder);
}

bool GiveWay(Round& round, BuilderStatus& builder) {
  const std::string why = WhyGiveWay(round, PodOf(round, builder.job));
  if (!why.empty()) {
    FailBuild(round, builder, reason::kBuilderLost, why);
  }
  return !why.empty();
}

bool MayNeverBegin(const Round& round, const BuilderStatus& builder) {
  if (builder.job.empty() || !builder.node.empty() ||
      round.in.now < builder.elected_time + kJobsTurn) {
    return false;
  }
  const PodView* pod = PodOf(round, builder.job);
  return pod == nullptr || pod->node < 0;
}

void FollowJob(Round& round, const LiveKey* key, BuilderStatus& builder) {
  if (key == nullptr) {
    FailBuild(round, builder, reason::kBuilderLost,
              "the image or the nodes that it was made for are gone");
    return;
  }
  const BuilderJob* job = FindJob(round, builder.job);
  const PodView* pod = PodOf(round, builder.job);
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
