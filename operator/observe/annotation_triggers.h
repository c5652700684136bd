// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/kube/runtime/work_queue.h"
#include "operator/observe/cluster_cache.h"

namespace cachewarm::observe {

// The label of this namespace asks for all that needs an accelerator to be warm.
bool IsOptedIn(const codec::Json& ns);

// This CacheWarmup stands for pods that no workload does: their namespace owns it.
bool IsForStandalonePods(const codec::Json& warmup);

// A workload as the key of a work queue: "Deployment/default/llama". Of pods that no workload
// stands for it is "Namespace/", their namespace and the name of the CacheWarmup that does.
struct WorkloadKey {
  std::string kind;
  kube::ObjectName name;

  std::string ToString() const { return kind + "/" + name.ToString(); }
  // INVALID_ARGUMENT unless it has three parts.
  static absl::StatusOr<WorkloadKey> Parse(std::string_view key);

  friend bool operator==(const WorkloadKey&, const WorkloadKey&) = default;
};

// Which workloads are to be asked again whether they want to be warmed: those that changed in what
// they ask for, those of a namespace whose label changed, and the owner of a CacheWarmup that
// changed; and pods that no workload stands for, when one comes or goes. What only moves a status
// brings nothing.
class AnnotationTriggers {
 public:
  // Both must outlive it; it must outlive the cluster's threads. Keys of `queue` are WorkloadKeys.
  AnnotationTriggers(ClusterCache& cluster, kube::WorkQueue& queue)
      : cluster_(cluster), queue_(queue) {}

  // Before ClusterCache::Start().
  void Attach();
  // Every workload of every kind: when this process begins to lead.
  void AddEverything();

 private:
  void OnWorkload(const kube::Change& change, std::string_view kind);
  void OnPod(const kube::Change& change);
  void OnNamespace(const kube::Change& change);
  void OnWarmup(const kube::Change& change);
  // Those of one namespace, or of all when `ns` is empty.
  void AddAll(const std::string& ns, Duration delay);
  // Pods of the namespace that no workload stands for, and the CacheWarmups that do.
  void AddStandalonePods(const std::string& ns, Duration delay);
  bool IsNamespaceOptedIn(const std::string& ns) const;

  ClusterCache& cluster_;
  kube::WorkQueue& queue_;
};

}  // namespace cachewarm::observe
