// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/annotation_subject.h"

#include <algorithm>
#include <utility>

#include "lib/api/names.h"
#include "lib/api/workload_kinds.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "operator/annotations/warmup_name.h"
#include "operator/workloads/accelerator_requests.h"
#include "operator/workloads/shape.h"

namespace cachewarm::controllers {
namespace {

using codec::Json;

bool IsChildOfWorkload(const Json& workload) {
  const kube::Owner owner = kube::ControllerOf(workload);
  return kube::LabelsOf(workload).contains(std::string(api::kBuilderWarmupLabel)) ||
         api::IsWorkloadKind(owner.api_version, owner.kind);
}

bool HasEnded(const Json& job) {
  const Json& conditions = codec::ListAt(job, {"status", "conditions"});
  return codec::TextAt(job, {"kind"}) == "Job" &&
         std::any_of(conditions.begin(), conditions.end(), [](const Json& condition) {
           const std::string type = codec::TextAt(condition, {"type"});
           return (type == "Complete" || type == "Failed") &&
                  codec::TextAt(condition, {"status"}) == "True";
         });
}

// True if the workload's pod template requests an accelerator. If a Rollout refers to a Deployment,
// reads the template of the Deployment.
bool RequestsAccelerator(const observe::ClusterCache& cluster, const Json& workload) {
  const std::string from = workloads::ShapeOf(workload).borrows_from;
  if (from.empty()) {
    return workloads::RequestsAccelerator(workload);
  }
  const kube::Object lender =
      cluster.deployments.store().Get({.ns = kube::NameOf(workload).ns, .name = from});
  return lender != nullptr && workloads::RequestsAccelerator(*lender);
}

std::string ServedBy(const observe::ClusterCache& cluster,
                     const annotations::AnnotationRequest& request) {
  for (const auto& warmup : cluster.warmup_views.ListNamespace(request.ns)) {
    const auto& ref = warmup->spec.workload_ref;
    if (ref.has_value() && ref->kind == request.kind && ref->name == request.name &&
        warmup->name != request.warmup) {
      return warmup->name;
    }
  }
  return "";
}

}  // namespace

std::optional<AnnotationSubject> FindAnnotationSubject(const observe::ClusterCache& cluster,
                                                       const observe::WorkloadKey& key) {
  const kube::Store* store = cluster.WorkloadStore(key.kind);
  const kube::Object workload = store == nullptr ? nullptr : store->Get(key.name);
  if (workload == nullptr) {
    return std::nullopt;
  }
  const kube::Object ns = cluster.namespaces.store().Get({.name = key.name.ns});
  annotations::AnnotationRequest request{
      .warmup = annotations::WarmupName(key.name.name),
      .api_version = codec::TextAt(*workload, {"apiVersion"}),
      .kind = codec::TextAt(*workload, {"kind"}),
      .ns = key.name.ns,
      .ns_uid = ns == nullptr ? "" : kube::UidOf(*ns),
      .name = key.name.name,
      .uid = kube::UidOf(*workload),
      .annotations = kube::AnnotationsOf(*workload),
      .namespace_opted_in = ns != nullptr && observe::IsOptedIn(*ns),
      .is_child = IsChildOfWorkload(*workload),
      .ended = kube::IsDeleting(*workload) || HasEnded(*workload) || ns == nullptr ||
               kube::IsDeleting(*ns)};
  request.accelerator = request.namespace_opted_in && RequestsAccelerator(cluster, *workload);
  request.served_by = ServedBy(cluster, request);
  return AnnotationSubject{.regarding = workload, .request = std::move(request)};
}

}  // namespace cachewarm::controllers
