// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/annotation_subject.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/api/workload_kinds.h"
#include "lib/codec/json_value.h"
#include "operator/annotations/warmup_name.h"
#include "operator/workloads/accelerators.h"
#include "operator/workloads/shape.h"
#include "operator/workloads/standalone_pods.h"

namespace cachewarm::controllers {
namespace {

using codec::Json;

bool IsChildOfWorkload(const Json& workload) {
  const kube::Owner owner = kube::ControllerOf(workload);
  return kube::LabelsOf(workload).contains(std::string(api::kBuilderWarmupLabel)) ||
         api::IsWorkloadKind(owner.api_version, owner.kind);
}

bool HasEnded(const Json& job) {
  const Json* conditions = kube::At(job, {"status", "conditions"});
  return kube::TextAt(job, {"kind"}) == "Job" && conditions != nullptr && conditions->is_array() &&
         std::any_of(conditions->begin(), conditions->end(), [](const Json& condition) {
           const std::string type = kube::TextAt(condition, {"type"});
           return (type == "Complete" || type == "Failed") &&
                  kube::TextAt(condition, {"status"}) == "True";
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

std::optional<AnnotationSubject> WorkloadSubject(const observe::ClusterCache& cluster,
                                                 const observe::WorkloadKey& key) {
  const kube::Store* store = cluster.WorkloadStore(key.kind);
  const kube::Object workload = store == nullptr ? nullptr : store->Get(key.name);
  if (workload == nullptr) {
    return std::nullopt;
  }
  const kube::Object ns = cluster.namespaces.store().Get({.name = key.name.ns});
  annotations::AnnotationRequest request{
      .warmup = annotations::WarmupName(key.name.name),
      .api_version = kube::TextAt(*workload, {"apiVersion"}),
      .kind = kube::TextAt(*workload, {"kind"}),
      .ns = key.name.ns,
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

// Returns the name of a CacheWarmup other than `own` that selects `pod`; "" if there is none.
std::string SelectedBy(const observe::ClusterCache& cluster, const Json& pod,
                       const std::string& own) {
  const auto labels = kube::LabelsOf(pod);
  for (const auto& warmup : cluster.warmup_views.ListNamespace(kube::NameOf(pod).ns)) {
    const auto& selector = warmup->spec.selector;
    const bool selects = std::all_of(selector.begin(), selector.end(), [&](const auto& label) {
      const auto found = labels.find(label.first);
      return found != labels.end() && found->second == label.second;
    });
    if (!selector.empty() && selects && warmup->name != own) {
      return warmup->name;
    }
  }
  return "";
}

size_t CountStandaloneWarmups(const observe::ClusterCache& cluster, const std::string& ns) {
  const auto warmups = cluster.warmups.store().ListNamespace(ns);
  return static_cast<size_t>(
      std::count_if(warmups.begin(), warmups.end(), [](const kube::CachedObjectPtr& warmup) {
        return observe::IsForStandalonePods(*warmup->Unpack());
      }));
}

annotations::Note SkippedWarning(std::string text) {
  return {.is_warning = true, .reason = api::reason::kInjectionSkipped, .text = std::move(text)};
}

std::vector<annotations::Note> WhySkipped(const std::string& ns, bool unlabelled) {
  if (unlabelled) {
    return {SkippedWarning(
        fmt::format("not injected: namespace {} requests warmups, but this pod has no supported "
                    "owner and no label that distinguishes it from other pods; set a label such as "
                    "\"app\", or exclude the pod with the annotation {}=false",
                    ns, api::kWarmAnnotation))};
  }
  return {SkippedWarning(
      fmt::format("not injected: namespace {} already has {} CacheWarmups for standalone pods, "
                  "probably because a label differs with every run; create a CacheWarmup whose "
                  "spec.selector has only the constant labels, and delete the unused CacheWarmups",
                  ns, kStandaloneMax))};
}

std::optional<AnnotationSubject> StandalonePodsSubject(const observe::ClusterCache& cluster,
                                                       const kube::ObjectName& warmup) {
  const kube::Object ns = cluster.namespaces.store().Get({.name = warmup.ns});
  const auto pods = cluster.pods.store().ByIndex(observe::StandaloneIndex(warmup));
  const kube::Object present = cluster.warmups.store().Get(warmup);
  if (ns == nullptr || (pods.empty() && present == nullptr)) {
    return std::nullopt;
  }
  AnnotationSubject subject{.regarding = pods.empty() ? present : pods.front()->Unpack()};
  const bool requested = observe::IsOptedIn(*ns) && !pods.empty();
  const size_t others = CountStandaloneWarmups(cluster, warmup.ns);
  const bool unlabelled = warmup.name == workloads::kUnlabelled;
  if (unlabelled || (present == nullptr && others >= kStandaloneMax)) {
    subject.problems =
        requested ? WhySkipped(warmup.ns, unlabelled) : std::vector<annotations::Note>();
    return subject;
  }
  subject.request = {.warmup = warmup.name,
                     .api_version = "v1",
                     .kind = std::string(kube::kNamespaces.kind),
                     .ns = warmup.ns,
                     .name = warmup.ns,
                     .uid = kube::UidOf(*ns),
                     .accelerator = true,
                     .namespace_opted_in = requested,
                     .ended = kube::IsDeleting(*ns),
                     .grace = observe::IsOptedIn(*ns) && others <= kStandaloneMany
                                  ? kStandaloneGrace
                                  : annotations::kRemovalGrace};
  if (const auto standalone = workloads::StandalonePodsOf(*subject.regarding);
      standalone.has_value()) {
    subject.request.selector = standalone->labels;
    subject.request.served_by = SelectedBy(cluster, *subject.regarding, warmup.name);
  }
  return subject;
}

}  // namespace

std::optional<AnnotationSubject> FindAnnotationSubject(const observe::ClusterCache& cluster,
                                                       const observe::WorkloadKey& key) {
  return key.kind == kube::kNamespaces.kind ? StandalonePodsSubject(cluster, key.name)
                                            : WorkloadSubject(cluster, key);
}

}  // namespace cachewarm::controllers
