// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/builders/job_refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/model/pod_groups.h"
#include "operator/plan/builders/job_capacity.h"
#include "operator/plan/builders/pod_copy.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace {

constexpr Duration kJobRecheck = std::chrono::seconds(30);

int JobsRunning(const Context& context, const Builds& builds) {
  const auto& builders = builds.builders;
  return context.in.builder_jobs_elsewhere +
         static_cast<int>(std::count_if(builders.begin(), builders.end(), [](const auto& each) {
           return IsRunning(each) && !each.job.empty();
         }));
}

std::string KindRefusal(WorkloadKind kind) {
  switch (kind) {
    case WorkloadKind::kSelector:
      return "no builder Job is created: a Job needs a pod template; set spec.workloadRef, or set "
             "compile.builder to FirstPod";
    case WorkloadKind::kGroup:
      return "no builder Job is created: a pod of a group does not start without the others; set "
             "compile.builder to FirstPod";
    default:
      return "";
  }
}

// A Job for the template's own image would be useless if admission rewrites the image of its pod.
std::string AdmissionRefusal(const Context& context) {
  return context.pod_template.admission_unknown
             ? "no builder Job is created yet: admission changed the image or devices of pods of "
               "the previous pod template; waiting for the API server's answer to a dry run of the "
               "current one"
             : "";
}

std::string TemplateRefusal(const Context& context) {
  const auto pod_template = TemplateOfJob(context);
  if (!pod_template.ok()) {
    return "no builder Job is created: " + Message(pod_template.status());
  }
  if (const std::string refusal = CopyRefusal(*pod_template); !refusal.empty()) {
    return "no builder Job is created: " + refusal;
  }
  const api::Pod copy = model::AsPod(std::make_shared<const codec::Json>(*pod_template));
  if (const std::string group = model::GroupOf(copy);
      !group.empty() || model::IsOfUnknownGang(copy)) {
    return fmt::format(
        "no builder Job is created: the pod template belongs to {}, and the Job's pod would wait "
        "for the other pods or count as one of them; set compile.builder to FirstPod",
        group.empty() ? "a gang" : "the group " + group);
  }
  return "";
}

// Returns the reason to create no Job if the workload's own pods wait for quota, or for a volume
// that the Job's pod would mount too; "" if they do not wait.
std::string PodsRefusal(const Context& context, Effects& effects) {
  if (context.in.constraints.quota_exceeded) {
    return "no builder Job is created: a pod of the workload waits for quota of the namespace";
  }
  if (const PodView* pod = PodWaitingForSharedClaim(context, Duration{0}, -1, effects)) {
    return fmt::format(
        "no builder Job is created: pod {} of the workload has not started and may wait for a "
        "PersistentVolumeClaim that the Job's pod would mount too",
        pod->pod->meta.name);
  }
  return "";
}

std::string CapacityRefusal(const Context& context, const Builds& builds, const LiveKey& key) {
  const int jobs_max = context.in.settings.builder_jobs_max;
  if (jobs_max == 0) {
    return "no builder Job is created: builders.jobsMax is 0 in the operator's configuration";
  }
  if (JobsRunning(context, builds) >= jobs_max) {
    return fmt::format(
        "{} builder Jobs are running in the cluster, the maximum that builders.jobsMax allows; "
        "waiting for one to end",
        jobs_max);
  }
  if (!NodesByCapacity(context, builds.reserved, key).has_capacity) {
    return fmt::format(
        "no node with GPU type {} and CPU class {} has capacity for a builder Job yet",
        key.factors.gpu_type, key.factors.cpu_class);
  }
  return "";
}

std::string Refusal(const Context& context, Builds& builds, const LiveKey& key) {
  std::string why = KindRefusal(context.in.workload.kind);
  why = why.empty() ? AdmissionRefusal(context) : std::move(why);
  why = why.empty() ? TemplateRefusal(context) : std::move(why);
  why = why.empty() ? PodsRefusal(context, builds.effects) : std::move(why);
  return why.empty() ? CapacityRefusal(context, builds, key) : why;
}

}  // namespace

bool MayMakeJob(const Context& context, Builds& builds, const LiveKey& key) {
  std::string why = Refusal(context, builds, key);
  if (why.empty()) {
    return true;
  }
  builds.job_refusal = std::move(why);
  builds.effects.RequeueAt(context.in.now + kJobRecheck);
  return false;
}

}  // namespace cachewarm::plan
