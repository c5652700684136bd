// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/world.h"

#include <algorithm>

#include "lib/api/names.h"
#include "lib/codec/json_value.h"
#include "operator/observe/projections.h"

namespace cachewarm::observe {
namespace {

// A pod that is created while we do not look may be held: it must not wait for us for long after
// the API server is back.
constexpr Duration kLongestWait{3'000};

kube::ReflectorOptions Watched(const kube::Resource& resource,
                               std::function<void(codec::Json&)> project) {
  return {.resource = resource, .longest_wait = kLongestWait, .project = std::move(project)};
}

kube::ReflectorOptions WatchedPods() {
  kube::ReflectorOptions options = Watched(kube::kPods, &ProjectPod);
  options.index = &PodIndex;
  return options;
}

kube::ReflectorOptions WatchedEvents(std::string_view reason) {
  kube::ReflectorOptions options = Watched(kube::kEvents, &ProjectEvent);
  options.field_selector = "reason=" + std::string(reason);
  options.index = [](const codec::Json& event) {
    return std::vector<std::string>{kube::TextAt(event, {"regarding", "uid"})};
  };
  return options;
}

kube::ReflectorOptions WatchedNodes() {
  kube::ReflectorOptions options = Watched(kube::kNodes, &ProjectNode);
  options.index = &NodeIndex;
  return options;
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

std::vector<std::string> NodeIndex(const codec::Json& node) {
  const codec::Json* taints = kube::At(node, {"spec", "taints"});
  const bool warming =
      taints != nullptr && taints->is_array() &&
      std::any_of(taints->begin(), taints->end(), [](const codec::Json& taint) {
        return std::find(std::begin(api::kWarmingTaints), std::end(api::kWarmingTaints),
                         kube::TextAt(taint, {"key"})) != std::end(api::kWarmingTaints);
      });
  return warming ? std::vector<std::string>{kWarmingIndex} : std::vector<std::string>();
}

std::vector<std::string> PodIndex(const codec::Json& pod) {
  std::vector<std::string> values;
  const codec::Json* gates = kube::At(pod, {"spec", "schedulingGates"});
  if (gates != nullptr && gates->is_array() &&
      std::any_of(gates->begin(), gates->end(), [](const codec::Json& gate) {
        return kube::TextAt(gate, {"name"}) == api::kSchedulingGate;
      })) {
    values.emplace_back(kHeldIndex);
  }
  const std::string warmup = kube::TextAt(pod, {"metadata", "annotations", api::kWarmupAnnotation});
  if (!warmup.empty()) {
    values.push_back(InjectedIndex(kube::NameOf(pod).ns, warmup));
  }
  const std::string builder_of =
      kube::TextAt(pod, {"metadata", "labels", api::kBuilderWarmupLabel});
  if (!builder_of.empty()) {
    values.push_back(BuilderIndex(builder_of));
  }
  const std::string node = kube::TextAt(pod, {"spec", "nodeName"});
  if (!node.empty() && kube::TextAt(pod, {"metadata", "labels", kAgentLabel}) == kAgentLabelValue) {
    values.push_back(AgentIndex(node));
  }
  return values;
}

World::World(const kube::Runtime& runtime)
    : warmups(runtime, Watched(kube::kCacheWarmups, &ProjectOwn)),
      node_caches(runtime, Watched(kube::kNodeCaches, &ProjectOwn)),
      nodes(runtime, WatchedNodes()),
      pods(runtime, WatchedPods()),
      jobs(runtime, Watched(kube::kJobs, &ProjectJob)),
      cron_jobs(runtime, Watched(kube::kCronJobs, &ProjectWorkload)),
      deployments(runtime, Watched(kube::kDeployments, &ProjectWorkload)),
      stateful_sets(runtime, Watched(kube::kStatefulSets, &ProjectWorkload)),
      namespaces(runtime, Watched(kube::kNamespaces, &ProjectNamespace)),
      disruption_budgets(runtime, Watched(kube::kPodDisruptionBudgets, &ProjectBudget)),
      failed_creates(runtime, WatchedEvents("FailedCreate")),
      failed_mounts(runtime, WatchedEvents("FailedMount")),
      warmup_views("CacheWarmup", warmups.store(), DecodeWith(&api::DecodeCacheWarmup),
                   runtime.log),
      node_cache_views("NodeCache", node_caches.store(), DecodeWith(&api::DecodeNodeCache),
                       runtime.log),
      node_views("Node", nodes.store(), DecodeWith(&api::DecodeNode), runtime.log),
      pod_views("Pod", pods.store(), &api::DecodePod, runtime.log) {
  for (const kube::Resource& resource :
       {kube::kRollouts, kube::kLeaderWorkerSets, kube::kRayClusters, kube::kInferenceServices,
        kube::kLlmInferenceServices}) {
    optional_workloads.emplace_back(runtime, Watched(resource, &ProjectWorkload));
  }
  warmups.OnChange([this](const kube::Change& change) { warmup_views.Take(change); });
  node_caches.OnChange([this](const kube::Change& change) { node_cache_views.Take(change); });
  nodes.OnChange([this](const kube::Change& change) { node_views.Take(change); });
  pods.OnChange([this](const kube::Change& change) {
    pod_views.Take(change);
    usage.Take(change);
  });
}

void World::Start(std::stop_token stop) {
  for (kube::Reflector* reflector : Reflectors()) {
    threads_.emplace_back([reflector, stop] { reflector->Run(stop); });
  }
  for (kube::OptionalReflector& optional : optional_workloads) {
    threads_.emplace_back([&optional, stop] { optional.Run(stop); });
  }
}

void World::Join() {
  threads_.clear();
}

void World::OnWorkload(
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

const kube::Store* World::WorkloadStore(std::string_view kind) const {
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

std::vector<kube::Reflector*> World::Reflectors() {
  return {&warmups,    &node_caches,    &nodes,         &pods,
          &jobs,       &cron_jobs,      &deployments,   &stateful_sets,
          &namespaces, &failed_creates, &failed_mounts, &disruption_budgets};
}

std::vector<const kube::Store*> World::Stores() const {
  std::vector<const kube::Store*> stores = {
      &warmups.store(),        &node_caches.store(),   &nodes.store(),
      &pods.store(),           &jobs.store(),          &cron_jobs.store(),
      &deployments.store(),    &stateful_sets.store(), &namespaces.store(),
      &failed_creates.store(), &failed_mounts.store(), &disruption_budgets.store()};
  for (const kube::OptionalReflector& optional : optional_workloads) {
    stores.push_back(&optional.store());
  }
  return stores;
}

bool World::HasSynced() const {
  const std::vector<const kube::Store*> stores = Stores();
  return std::all_of(stores.begin(), stores.end(),
                     [](const kube::Store* store) { return store->HasSynced(); });
}

}  // namespace cachewarm::observe
