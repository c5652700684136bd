// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/api/kubernetes.h"
#include "lib/api/node_cache.h"
#include "lib/codec/packed.h"
#include "lib/kube/discovery/optional_reflector.h"
#include "lib/kube/runtime/reflector.h"
#include "operator/observe/decoded.h"
#include "operator/observe/node_caches.h"
#include "operator/observe/node_usage.h"

namespace cachewarm::observe {

// Caches every object that the operator watches. Each kind has a reflector, whose store keeps only
// the members that projections.h selects. Some kinds also have a view that decodes the stored
// objects. Construct before starting threads. Reads are thread-safe afterwards.
class ClusterCache {
 public:
  // All references in `runtime` must outlive this object.
  explicit ClusterCache(const kube::Runtime& runtime);

  // Starts one thread per reflector. The threads end when `stop` is requested or the ClusterCache
  // is destroyed.
  void Start(std::stop_token stop);
  // Blocks until the threads have ended.
  void Join();

  // Sets the handler to call for every change of a workload, with the change and the workload's
  // kind. Call before Start().
  void OnWorkload(const std::function<void(const kube::Change&, std::string_view kind)>& handler);
  // Returns the store of a workload kind (lib/api/workload_kinds.h); null for any other kind.
  const kube::Store* WorkloadStore(std::string_view kind) const;

  std::vector<kube::Reflector*> Reflectors();
  std::vector<const kube::Store*> Stores() const;
  bool HasSynced() const;

  // Deduplicates the parts that many stored objects, of any kind, have in common.
  const std::shared_ptr<codec::PackTable> table = codec::PackTable::Make();

  kube::Reflector warmups;
  kube::Reflector node_caches;
  kube::Reflector nodes;
  kube::Reflector pods;
  kube::Reflector jobs;
  kube::Reflector cron_jobs;
  kube::Reflector deployments;
  kube::Reflector stateful_sets;
  kube::Reflector namespaces;
  kube::Reflector disruption_budgets;
  // If RBAC forbids listing Services (with the roles of an older release), this store counts as
  // synced and empty, because plans can be made without Services.
  kube::Reflector services;
  kube::Reflector failed_creates;  // events with the reason FailedCreate
  // Events with the reason FailedMount, indexed by the uid of the pod in `regarding`.
  kube::Reflector failed_mounts;
  // Workload kinds whose CRD may be missing in the cluster. A missing kind counts as synced.
  std::deque<kube::OptionalReflector> optional_workloads;
  // ResourceSlices of NVIDIA's driver, indexed by node name. Absent before Kubernetes 1.34, and
  // counts as absent if RBAC forbids listing them.
  kube::OptionalReflector resource_slices;

  Decoded<api::CacheWarmup> warmup_views;
  NodeCaches node_cache_views;
  Decoded<api::Node> node_views;
  Decoded<api::Pod> pod_views;
  NodeUsage usage;

 private:
  void WatchServices(std::stop_token stop);

  kube::Runtime runtime_;
  std::vector<std::jthread> threads_;
};

// Returns the values by which ClusterCache::pods.store().ByIndex() finds a pod.
//  - "held": the pod has the cachewarm scheduling gate.
//  - "warmup:<ns>/<name>": the pod is injected for that warmup.
//  - "builder:<uid>": the pod belongs to a builder Job of the warmup with this uid.
//  - "agent:<node>": the pod has the label of an agent (in any namespace) and is bound to the node.
//  - "mounts:<node>": the pod has the cache volume; without a node: it is not bound yet.
std::vector<std::string> PodIndex(const codec::Json& pod);
bool IsHeldAtGate(const codec::Json& pod);
// Returns the name of the warmup in the pod's annotation; "" if the annotation is absent or
// invalid.
std::string WarmupOf(const codec::Json& pod);
std::string AgentIndex(const std::string& node);
std::string MountsIndex(const std::string& node);
bool HasCacheVolume(const codec::Json& pod);
// Returns the values by which ClusterCache::nodes.store().ByIndex() finds a node: "warming" while
// it has a cachewarm startup taint.
std::vector<std::string> NodeIndex(const codec::Json& node);
inline constexpr const char* kWarmingIndex = "warming";
// Label of an agent's pod (agent.yaml of the chart).
inline constexpr std::string_view kAgentLabel = "app.kubernetes.io/component";
inline constexpr std::string_view kAgentLabelValue = "agent";
inline constexpr std::string_view kAgentNameLabel = "app.kubernetes.io/name";
inline constexpr std::string_view kAgentNameLabelValue = "cachewarm";
std::string InjectedIndex(const std::string& ns, const std::string& warmup);
std::string BuilderIndex(const std::string& warmup_uid);
inline constexpr const char* kHeldIndex = "held";

}  // namespace cachewarm::observe
