// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/building/job_refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/plan/building/job_room.h"
#include "operator/plan/decisions.h"
#include "operator/plan/gates/groups.h"
#include "operator/plan/scheduling/requests.h"
#include "operator/render/fields.h"
#include "operator/render/job.h"

namespace cachewarm::plan {

namespace {

constexpr Duration kLookAgain = std::chrono::seconds(30);

int JobsRunning(const Round& round) {
  const auto& builders = round.out.status.builders;
  return round.in.builder_jobs_elsewhere +
         static_cast<int>(std::count_if(builders.begin(), builders.end(), [](const auto& each) {
           return IsRunning(each) && !each.job.empty();
         }));
}

std::string RefusalOfKind(WorkloadKind kind) {
  switch (kind) {
    case WorkloadKind::kSelector:
      return "a builder Job needs a template; name a workload in spec.workloadRef, or "
             "set compile.builder to FirstPod";
    case WorkloadKind::kGroup:
      return "no builder Job is made: a pod of a group does not start without the others; set "
             "compile.builder to FirstPod";
    default:
      return "";
  }
}

std::string RefusalOfTemplate(const Round& round) {
  const auto pod_template = TemplateOfJob(round);
  if (!pod_template.ok()) {
    return "no builder Job is made: " + Message(pod_template.status());
  }
  if (const std::string refusal = render::CopyRefusal(*pod_template); !refusal.empty()) {
    return "no builder Job is made: " + refusal;
  }
  const api::Pod copy = AsPod(std::make_shared<const codec::Json>(*pod_template));
  if (const std::string group = GroupOf(copy); !group.empty() || IsOfUnknownGang(copy)) {
    return fmt::format(
        "no builder Job is made: the pod template is marked as of {}, and a "
        "copy would wait for the others or count as one of them; set "
        "compile.builder to FirstPod",
        group.empty() ? "a gang" : "the group " + group);
  }
  const codec::Json* container = render::Named(render::List(*pod_template, {"spec", "containers"}),
                                               round.pod_template.factors.container);
  if (container == nullptr || AcceleratorsOf(*container) != round.pod_template.factors.devices) {
    return "no builder Job is made: compile.overrides: the devices of the container "
           "that compiles must stay; another number compiles another cache";
  }
  return "";
}

// What its pods could lack if a copy ran now.
std::string RefusalOfPods(Round& round) {
  if (round.in.promises.quota_exceeded) {
    return "no builder Job is made: a pod of the workload waits for room in the quota of "
           "the namespace";
  }
  if (const PodView* pod = PodThatMayLackAClaim(round, Duration{0}, -1)) {
    return fmt::format(
        "no builder Job is made: pod {} of the workload has not started and "
        "may wait for a claim that a copy would mount too",
        pod->pod->meta.name);
  }
  return "";
}

std::string RefusalOfRoom(Round& round, const LiveKey& key) {
  const int jobs_max = round.in.settings.builder_jobs_max;
  if (jobs_max == 0) {
    return "the operator makes no builder Jobs (builders.jobsMax is 0)";
  }
  if (JobsRunning(round) >= jobs_max) {
    return fmt::format(
        "{} builder Jobs are running in the cluster, as many as "
        "builders.jobsMax allows; waiting for one to end",
        jobs_max);
  }
  if (!NodesByRoom(round, key).has_room) {
    return fmt::format("no node of {}, {} has room for a builder; waiting", key.factors.gpu_type,
                       key.factors.cpu_class);
  }
  return "";
}

std::string Refusal(Round& round, const LiveKey& key) {
  std::string why = RefusalOfKind(round.in.workload.kind);
  why = why.empty() ? RefusalOfTemplate(round) : std::move(why);
  why = why.empty() ? RefusalOfPods(round) : std::move(why);
  return why.empty() ? RefusalOfRoom(round, key) : why;
}

}  // namespace

bool MayMakeJob(Round& round, const LiveKey& key) {
  std::string why = Refusal(round, key);
  if (why.empty()) {
    return true;
  }
  round.job_refusal = std::move(why);
  WakeAt(round, round.in.now + kLookAgain);
  return false;
}

}  // namespace cachewarm::plan
