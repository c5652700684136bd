// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/cluster_cache.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/api/startup_taint.h"
#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/fingerprint/offered.h"
#include "lib/kube/core/request.h"
#include "operator/observe/projections.h"

namespace cachewarm::observe {
namespace {

// Maximum backoff before a kind is listed again after an error. It is short, so that held pods are
// noticed soon after an outage of the API server.
constexpr Duration kRelistBackoffMax{3'000};

// Number of decoded pods to cache. It is small because only the pods of the warmup being planned
// are looked up repeatedly, not all 10,000 pods.
constexpr size_t kPodValuesMax = 32;
// Objects per page of a list. A page should have at most about 1 MB. With its managedFields, a
// NodeCache of 20 warmups has 25 KB and a pod has 4 KB.
constexpr int kSmallPage = 50;
constexpr int kPage = 200;
// Longest interval between attempts to list Services while RBAC forbids it.
constexpr Duration kServicesRelistBackoffMax{60'000};
// Interval between attempts of the first list of Services.
constexpr Duration kServicesProbeInterval{1'000};

using Table = std::shared_ptr<codec::PackTable>;

kube::ReflectorOptions Watched(const Table& table, const kube::Resource& resource,
                               std::function<void(codec::Json&)> project) {
  return {.resource = resource,
          .page_items = kPage,
          .backoff_max = kRelistBackoffMax,
          .project = std::move(project),
          .table = table};
}

kube::ReflectorOptions WatchedServices(const Table& table) {
  kube::ReflectorOptions options = Watched(table, kube::kServices, &ProjectService);
  options.backoff_max = kServicesRelistBackoffMax;
  return options;
}

kube::ReflectorOptions WatchedPods(const Table& table) {
  kube::ReflectorOptions options = Watched(table, kube::kPods, &ProjectPod);
  options.index = &PodIndex;
  return options;
}

kube::ReflectorOptions WatchedEvents(const Table& table, std::string_view reason) {
  kube::ReflectorOptions options = Watched(table, kube::kEvents, &ProjectEvent);
  options.field_selector = "reason=" + std::string(reason);
  options.index = [](const codec::Json& event) {
    return std::vector<std::string>{codec::TextAt(event, {"regarding", "uid"})};
  };
  return options;
}

kube::ReflectorOptions WatchedNodes(const Table& table) {
  kube::ReflectorOptions options = Watched(table, kube::kNodes, &ProjectNode);
  options.index = &NodeIndex;
  return options;
}

kube::ReflectorOptions WatchedSlices(const Table& table) {
  kube::ReflectorOptions options = Watched(table, kube::kResourceSlices, &ProjectResourceSlice);
  options.page_items = kSmallPage;
  options.field_selector = fmt::format("spec.driver={}", fingerprint::kNvidiaDraDriver);
  options.index = [](const codec::Json& slice) {
    return std::vector<std::string>{codec::TextAt(slice, {"spec", "nodeName"})};
  };
  return options;
}

kube::ReflectorOptions WatchedNodeCaches(const Table& table) {
  kube::ReflectorOptions options = Watched(table, kube::kNodeCaches, &ProjectOwn);
  options.page_items = kSmallPage;
  return options;
}

// Decodes a pod, then drops the status from the JSON in Pod::object. The status is half of that
// JSON, and plan and render read only the decoded status.
absl::StatusOr<api::Pod> DecodeLeanPod(const kube::Object& object) {
  CW_ASSIGN_OR_RETURN(api::Pod pod, api::DecodePod(object));
  codec::Json lean = *object;
  lean.erase("status");
  pod.object = std::make_shared<const codec::Json>(std::move(lean));
  return pod;
}

template <typename T>
auto DecodeWith(absl::StatusOr<T> (*decode)(const codec::Json&)) {
  return [decode](const kube::Object& object) { return decode(*object); };
}

}  // namespace

std::string InjectedIndex(const std::string& ns, const std::string& warmup) {
  return "warmup:" + ns + "/" + warmup;
}

std::string BuilderIndex(const std::string& warmup_uid) {
  return "builder:" + warmup_uid;
}

std::string AgentIndex(const std::string& node) {
  return "agent:" + node;
}

std::string MountsIndex(const std::string& node) {
  return "mounts:" + node;
}

bool HasCacheVolume(const codec::Json& pod) {
  const codec::Json* volumes = codec::At(pod, {"spec", "volumes"});
  return volumes != nullptr && volumes->is_array() &&
         std::any_of(volumes->begin(), volumes->end(), [](const codec::Json& volume) {
           return codec::TextAt(volume, {"name"}) == api::kVolume;
         });
}

std::vector<std::string> NodeIndex(const codec::Json& node) {
  const codec::Json& taints = codec::ListAt(node, {"spec", "taints"});
  const bool warming = std::any_of(taints.begin(), taints.end(), [](const codec::Json& taint) {
    return api::IsStartupTaint(codec::TextAt(taint, {"key"}));
  });
  return warming ? std::vector<std::string>{kWarmingIndex} : std::vector<std::string>();
}

bool IsHeldAtGate(const codec::Json& pod) {
  const codec::Json& gates = codec::ListAt(pod, {"spec", "schedulingGates"});
  return std::any_of(gates.begin(), gates.end(), [](const codec::Json& gate) {
    return codec::TextAt(gate, {"name"}) == api::kSchedulingGate;
  });
}

std::string WarmupOf(const codec::Json& pod) {
  return std::string(
      api::WarmupNameIn(codec::TextAt(pod, {"metadata", "annotations", api::kWarmupAnnotation})));
}

std::vector<std::string> PodIndex(const codec::Json& pod) {
  std::vector<std::string> values;
  if (IsHeldAtGate(pod)) {
    values.emplace_back(kHeldIndex);
  }
  const std::string warmup = WarmupOf(pod);
  if (!warmup.empty()) {
    values.push_back(InjectedIndex(kube::NameOf(pod).ns, warmup));
  }
  const std::string builder_of =
      codec::TextAt(pod, {"metadata", "labels", api::kBuilderWarmupLabel});
  if (!builder_of.empty()) {
    values.push_back(BuilderIndex(builder_of));
  }
  const std::string node = codec::TextAt(pod, {"spec", "nodeName"});
  if (!node.empty() &&
      codec::TextAt(pod, {"metadata", "labels", kAgentLabel}) == kAgentLabelValue) {
    values.push_back(AgentIndex(node));
  }
  if (HasCacheVolume(pod)) {
    values.push_back(MountsIndex(node));
  }
  return values;
}

ClusterCache::ClusterCache(const kube::Runtime& runtime)
    : warmups(runtime, Watched(table, kube::kCacheWarmups, &ProjectOwn)),
      node_caches(runtime, WatchedNodeCaches(table)),
      nodes(runtime, WatchedNodes(table)),
      pods(runtime, WatchedPods(table)),
      jobs(runtime, Watched(table, kube::kJobs, &ProjectJob)),
      cron_jobs(runtime, Watched(table, kube::kCronJobs, &ProjectWorkload)),
      deployments(runtime, Watched(table, kube::kDeployments, &ProjectWorkload)),
      stateful_sets(runtime, Watched(table, kube::kStatefulSets, &ProjectWorkload)),
      namespaces(runtime, Watched(table, kube::kNamespaces, &ProjectNamespace)),
      disruption_budgets(runtime, Watched(table, kube::kPodDisruptionBudgets, &ProjectBudget)),
      services(runtime, WatchedServices(table)),
      failed_creates(runtime, WatchedEvents(table, "FailedCreate")),
      failed_mounts(runtime, WatchedEvents(table, "FailedMount")),
      resource_slices(runtime, WatchedSlices(table)),
      warmup_views("CacheWarmup", warmups.store(), DecodeWith(&api::DecodeCacheWarmup),
                   runtime.log),
      node_cache_views(node_caches.store(), runtime.log),
      node_views("Node", nodes.store(), DecodeWith(&api::DecodeNode), runtime.log),
      pod_views("Pod", pods.store(), &DecodeLeanPod, runtime.log, kPodValuesMax),
      runtime_(runtime) {
  for (const kube::Resource& resource :
       {kube::kRollouts, kube::kLeaderWorkerSets, kube::kRayClusters, kube::kInferenceServices,
        kube::kLlmInferenceServices}) {
    optional_workloads.emplace_back(runtime, Watched(table, resource, &ProjectWorkload));
  }
  warmups.OnChange([this](const kube::Change& change) { warmup_views.Apply(change); });
  node_caches.OnChange([this](const kube::Change& change) { node_cache_views.Apply(change); });
  nodes.OnChange([this](const kube::Change& change) { node_views.Apply(change); });
  pods.OnChange([this](const kube::Change& change) {
    pod_views.Apply(change);
    usage.Apply(change);
  });
}

void ClusterCache::Start(std::stop_token stop) {
  for (kube::Reflector* reflector : Reflectors()) {
    threads_.emplace_back([reflector, stop] { reflector->Run(stop); });
  }
  for (kube::OptionalReflector& optional : optional_workloads) {
    threads_.emplace_back([&optional, stop] { optional.Run(stop); });
  }
  threads_.emplace_back([this, stop] { resource_slices.Run(stop); });
  threads_.emplace_back([this, stop] { WatchServices(stop); });
}

void ClusterCache::WatchServices(std::stop_token stop) {
  absl::Status asked;
  do {
    asked = runtime_.client.Do(kube::List(kube::kServices, {.limit = 1}), stop).status();
  } while (!asked.ok() && !absl::IsPermissionDenied(asked) &&
           SleepFor(runtime_.clock, kServicesProbeInterval, stop));
  if (absl::IsPermissionDenied(asked)) {
    runtime_.log.Warning(
        "cannot list Services, so a builder pod may carry labels that a Service selects; grant the "
        "operator list and watch on services");
    services.Forget();
  }
  services.Run(stop);
}

void ClusterCache::Join() {
  threads_.clear();
}

void ClusterCache::OnWorkload(
    const std::function<void(const kube::Change&, std::string_view kind)>& handler) {
  const auto with_kind = [&handler](const kube::Resource& resource) {
    return [handler, kind = resource.kind](const kube::Change& change) { handler(change, kind); };
  };
  for (kube::Reflector* reflector : {&deployments, &stateful_sets, &jobs, &cron_jobs}) {
    reflector->OnChange(with_kind(reflector->resource()));
  }
  for (kube::OptionalReflector& optional : optional_workloads) {
    optional.OnChange(with_kind(optional.reflector().resource()));
  }
}

const kube::Store* ClusterCache::WorkloadStore(std::string_view kind) const {
  for (const kube::Reflector* reflector : {&deployments, &stateful_sets, &jobs, &cron_jobs}) {
    if (reflector->resource().kind == kind) {
      return &reflector->store();
    }
  }
  for (const kube::OptionalReflector& optional : optional_workloads) {
    if (optional.reflector().resource().kind == kind) {
      return &optional.store();
    }
  }
  return nullptr;
}

std::vector<kube::Reflector*> ClusterCache::Reflectors() {
  return {&warmups,    &node_caches,    &nodes,         &pods,
          &jobs,       &cron_jobs,      &deployments,   &stateful_sets,
          &namespaces, &failed_creates, &failed_mounts, &disruption_budgets};
}

std::vector<const kube::Store*> ClusterCache::Stores() const {
  std::vector<const kube::Store*> stores = {
      &warmups.store(),        &node_caches.store(),    &nodes.store(),
      &pods.store(),           &jobs.store(),           &cron_jobs.store(),
      &deployments.store(),    &stateful_sets.store(),  &namespaces.store(),
      &failed_creates.store(), &failed_mounts.store(),  &disruption_budgets.store(),
      &services.store(),       &resource_slices.store()};
  for (const kube::OptionalReflector& optional : optional_workloads) {
    stores.push_back(&optional.store());
  }
  return stores;
}

bool ClusterCache::HasSynced() const {
  const std::vector<const kube::Store*> stores = Stores();
  return std::all_of(stores.begin(), stores.end(),
                     [](const kube::Store* store) { return store->HasSynced(); });
}

}  // namespace cachewarm::observe
