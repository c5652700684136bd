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

// Everything that the operator watches: one reflector a kind, cut down by projections.h, and the
// decoded views that are fed by them. Made before any thread runs, read by all afterwards.
class ClusterCache {
 public:
  // What `runtime` references must outlive it.
  explicit ClusterCache(const kube::Runtime& runtime);

  // Starts one thread a reflector; they end with `stop` or the ClusterCache.
  void Start(std::stop_token stop);
  // Blocks until the threads have ended.
  void Join();

  // Calls `handler` with every change of a workload of any kind, and that kind. Before Start().
  void OnWorkload(const std::function<void(const kube::Change&, std::string_view kind)>& handler);
  // Where workloads of a kind (lib/api/workload_kinds.h) are; null for any other.
  const kube::Store* WorkloadStore(std::string_view kind) const;

  std::vector<kube::Reflector*> Reflectors();
  std::vector<const kube::Store*> Stores() const;
  bool HasSynced() const;

  // What the objects of all kinds have in common.
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
  // Synced and empty where they may not be listed: an older role does not grant it, and what they
  // would tell is no reason to plan nothing.
  kube::Reflector services;
  kube::Reflector failed_creates;  // events of that reason
  kube::Reflector failed_mounts;   // by the uid of the pod that they are about
  // Kinds of workloads that the cluster may not serve; one that it does not counts as synced.
  std::deque<kube::OptionalReflector> optional_workloads;

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

// Pod index: what a pod is found by in ClusterCache::pods.store().ByIndex().
// "held": it waits at our gate.
// "warmup:<ns>/<name>": injected for that warmup.
// "builder:<uid>": builder Job's pod of the warmup with this uid.
// "agent:<node>": labelled as an agent's pod (in whatever namespace) and bound to that node.
// "standalone:<ns>/<name>": workloads::StandalonePodsOf() says that the warmup of that name stands
// for it.
std::vector<std::string> PodIndex(const codec::Json& pod);
bool IsHeldAtGate(const codec::Json& pod);
// What its annotation says; "" for none, and for what is no name.
std::string WarmupOf(const codec::Json& pod);
std::string AgentIndex(const std::string& node);
// Node index: "warming", while it has one of our startup taints.
std::vector<std::string> NodeIndex(const codec::Json& node);
inline constexpr const char* kWarmingIndex = "warming";
// Label of an agent's pod (manifests/agent.yaml).
inline constexpr std::string_view kAgentLabel = "app.kubernetes.io/component";
inline constexpr std::string_view kAgentLabelValue = "agent";
std::string InjectedIndex(const std::string& ns, const std::string& warmup);
std::string BuilderIndex(const std::string& warmup_uid);
std::string StandaloneIndex(const kube::ObjectName& warmup);
inline constexpr const char* kHeldIndex = "held";

}  // namespace cachewarm::observe
