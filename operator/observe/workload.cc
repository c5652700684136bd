// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/workload.h"

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/codec/json_value.h"

namespace cachewarm::observe {
namespace {

using codec::Json;

std::map<std::string, std::string> TextMap(const Json* object) {
  std::map<std::string, std::string> out;
  if (object != nullptr && object->is_object()) {
    for (const auto& [key, value] : object->items()) {
      if (value.is_string()) {
        out[key] = value.get<std::string>();
      }
    }
  }
  return out;
}

int64_t CountAt(const Json& object, std::initializer_list<std::string_view> path,
                int64_t fallback) {
  const Json* value = kube::At(object, path);
  return value != nullptr && value->is_number_integer() ? value->get<int64_t>() : fallback;
}

const kube::Store* StoreOf(const World& world, const std::string& kind) {
  if (kind == "Deployment") {
    return &world.deployments.store();
  }
  if (kind == "StatefulSet") {
    return &world.stateful_sets.store();
  }
  if (kind == "Job") {
    return &world.jobs.store();
  }
  return nullptr;
}

plan::WorkloadKind KindOf(const std::string& kind) {
  if (kind == "StatefulSet") {
    return plan::WorkloadKind::kStatefulSet;
  }
  return kind == "Job" ? plan::WorkloadKind::kJob : plan::WorkloadKind::kDeployment;
}

plan::Workload ResolveReferenced(const World& world, const api::CacheWarmup& warmup) {
  const api::WorkloadRef& ref = *warmup.spec.workload_ref;
  plan::Workload workload{.kind = KindOf(ref.kind), .name = ref.name};
  if (StoreOf(world, ref.kind) == nullptr) {
    workload.problem = fmt::format(
        "spec.workloadRef.kind: {} is not one of Deployment, StatefulSet, Job", ref.kind);
    return workload;
  }
  const kube::Object object = FindReferenced(world, warmup);
  if (object == nullptr || kube::IsDeleting(*object)) {
    workload.problem =
        fmt::format("no {} named \"{}\" in namespace \"{}\"", ref.kind, ref.name, warmup.ns);
    return workload;
  }
  workload.found = true;
  workload.uid = kube::UidOf(*object);
  workload.selector = TextMap(kube::At(*object, {"spec", "selector", "matchLabels"}));
  workload.replicas = ref.kind == "Job" ? CountAt(*object, {"spec", "parallelism"}, 1)
                                        : CountAt(*object, {"spec", "replicas"}, 1);
  if (const Json* pod_template = kube::At(*object, {"spec", "template"})) {
    // Shares the life of the stored object instead of copying it.
    workload.pod_template = std::shared_ptr<const Json>(object, pod_template);
  }
  return workload;
}

}  // namespace

kube::Object FindReferenced(const World& world, const api::CacheWarmup& warmup) {
  if (!warmup.spec.workload_ref.has_value()) {
    return nullptr;
  }
  const kube::Store* store = StoreOf(world, warmup.spec.workload_ref->kind);
  return store == nullptr ? nullptr
                          : store->Get({.ns = warmup.ns, .name = warmup.spec.workload_ref->name});
}

plan::Workload ResolveWorkload(const World& world, const api::CacheWarmup& warmup) {
  if (warmup.spec.workload_ref.has_value()) {
    return ResolveReferenced(world, warmup);
  }
  plan::Workload workload{.found = true, .selector = warmup.spec.selector};
  if (warmup.spec.pod_template != nullptr) {
    workload.kind = plan::WorkloadKind::kTemplate;
    workload.replicas = 0;
    workload.pod_template = warmup.spec.pod_template;
    return workload;
  }
  workload.kind = plan::WorkloadKind::kSelector;
  return workload;
}

bool LacksPods(const World& world, const api::CacheWarmup& warmup) {
  const kube::Object object = FindReferenced(world, warmup);
  if (object == nullptr) {
    return false;
  }
  if (warmup.spec.workload_ref->kind == "Job") {
    return CountAt(*object, {"status", "active"}, 0) == 0 &&
           CountAt(*object, {"spec", "parallelism"}, 1) > 0 &&
           kube::At(*object, {"status", "completionTime"}) == nullptr &&
           CountAt(*object, {"status", "failed"}, 0) == 0;
  }
  return CountAt(*object, {"status", "replicas"}, 0) < CountAt(*object, {"spec", "replicas"}, 1);
}

}  // namespace cachewarm::observe
