// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/workload.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "operator/observe/owners.h"
#include "operator/workloads/shape.h"

namespace cachewarm::observe {
namespace {

using codec::Json;

// Returns the object that has the pod template and selector of `object`: itself, or the Deployment
// that a Rollout refers to. Null if that Deployment does not exist.
kube::Object TemplateOwner(const ClusterCache& cluster, const kube::Object& object,
                           const workloads::WorkloadShape& shape) {
  return shape.borrows_from.empty()
             ? object
             : cluster.deployments.store().Get(
                   {.ns = kube::NameOf(*object).ns, .name = shape.borrows_from});
}

std::string LacksLabels(const api::WorkloadRef& ref) {
  return fmt::format(
      "the pod template of {} \"{}\" has no labels, so its pods cannot be identified; add a label "
      "to spec.jobTemplate.spec.template.metadata.labels",
      ref.kind, ref.name);
}

model::Workload ResolveReferenced(const ClusterCache& cluster, const api::CacheWarmup& warmup) {
  const api::WorkloadRef& ref = *warmup.spec.workload_ref;
  model::Workload workload{.name = ref.name};
  if (ref.kind == "Job") {
    workload.kind = model::WorkloadKind::kJob;  // also while the Job does not exist
  }
  const kube::Object object = FindReferenced(cluster, warmup);
  if (object == nullptr || kube::IsDeleting(*object)) {
    workload.problem =
        fmt::format("no {} named \"{}\" in namespace \"{}\"; create it or correct spec.workloadRef",
                    ref.kind, ref.name, warmup.ns);
    return workload;
  }
  const workloads::WorkloadShape own = workloads::ShapeOf(*object);
  const kube::Object owner = TemplateOwner(cluster, object, own);
  if (owner == nullptr) {
    workload.problem = fmt::format(
        "{} \"{}\" uses the template of Deployment \"{}\", which does not exist; "
        "create it or correct spec.workloadRef of the Rollout",
        ref.kind, ref.name, own.borrows_from);
    return workload;
  }
  const workloads::WorkloadShape shape = owner == object ? own : workloads::ShapeOf(*owner);
  workload.kind = own.kind;
  workload.replicas = own.replicas;
  workload.uid = kube::UidOf(*object);
  workload.selector = own.selector.empty() ? shape.selector : own.selector;
  if (own.kind == model::WorkloadKind::kCronJob && workload.selector.empty()) {
    workload.problem = LacksLabels(ref);
    return workload;
  }
  workload.found = true;
  if (shape.pod_template != nullptr) {
    // Shares ownership with the stored object instead of copying.
    workload.pod_template = std::shared_ptr<const Json>(owner, shape.pod_template);
  }
  return workload;
}

bool LacksReplicas(const Json& object) {
  if (codec::TextAt(object, {"kind"}) == "Job") {
    return codec::IntegerAt(object, {"status", "active"}, 0) == 0 &&
           codec::IntegerAt(object, {"spec", "parallelism"}, 1) > 0 &&
           codec::At(object, {"status", "completionTime"}) == nullptr &&
           codec::IntegerAt(object, {"status", "failed"}, 0) == 0;
  }
  // For kinds without status.replicas, missing pods cannot be detected.
  if (codec::At(object, {"status", "replicas"}) == nullptr &&
      codec::TextAt(object, {"apiVersion"}) != "apps/v1") {
    return false;
  }
  return codec::IntegerAt(object, {"status", "replicas"}, 0) <
         codec::IntegerAt(object, {"spec", "replicas"}, 1);
}

}  // namespace

kube::Object FindReferenced(const ClusterCache& cluster, const api::CacheWarmup& warmup) {
  if (!warmup.spec.workload_ref.has_value()) {
    return nullptr;
  }
  const kube::Store* store = cluster.WorkloadStore(warmup.spec.workload_ref->kind);
  return store == nullptr ? nullptr
                          : store->Get({.ns = warmup.ns, .name = warmup.spec.workload_ref->name});
}

model::Workload ResolveWorkload(const ClusterCache& cluster, const api::CacheWarmup& warmup) {
  if (warmup.spec.workload_ref.has_value()) {
    return ResolveReferenced(cluster, warmup);
  }
  model::Workload workload{.found = true, .selector = warmup.spec.selector};
  if (warmup.spec.pod_template != nullptr) {
    workload.kind = model::WorkloadKind::kTemplate;
    workload.replicas = 0;
    workload.pod_template = warmup.spec.pod_template;
    return workload;
  }
  workload.kind = model::WorkloadKind::kSelector;
  return workload;
}

bool IsFinished(const kube::CachedObject& job) {
  const std::vector<codec::PackedValue> conditions =
      job.value().At({"status", "conditions"}).Items();
  return std::any_of(conditions.begin(), conditions.end(), [](const codec::PackedValue& each) {
    const std::string_view type = each.TextAt({"type"});
    return (type == "Failed" || type == "Complete") && each.TextAt({"status"}) == "True";
  });
}

bool LacksPods(const ClusterCache& cluster, const api::CacheWarmup& warmup) {
  const model::Workload workload = ResolveWorkload(cluster, warmup);
  if (workload.kind == model::WorkloadKind::kSelector) {
    const std::vector<kube::Object> owners =
        workload.selector.empty() ? std::vector<kube::Object>()
                                  : FindOwners(cluster, warmup.ns, workload.selector);
    return std::any_of(owners.begin(), owners.end(),
                       [](const kube::Object& owner) { return LacksReplicas(*owner); });
  }
  const kube::Object object = FindReferenced(cluster, warmup);
  return object != nullptr && LacksReplicas(*object);
}

}  // namespace cachewarm::observe
