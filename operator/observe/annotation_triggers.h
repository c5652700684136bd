// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/kube/runtime/work_queue.h"
#include "operator/observe/cluster_cache.h"

namespace cachewarm::observe {

// True if the namespace's label requests warmups for all workloads with accelerators.
bool IsOptedIn(const codec::Json& ns);

// True if this CacheWarmup was created for standalone pods: their namespace owns it.
bool IsForStandalonePods(const codec::Json& warmup);

// Work queue key of a workload: "Deployment/default/llama". For standalone pods: "Namespace/",
// their namespace, "/" and the name of their CacheWarmup.
struct WorkloadKey {
  std::string kind;
  kube::ObjectName name;

  std::string ToString() const { return kind + "/" + name.ToString(); }
  // Errors: INVALID_ARGUMENT unless the key has three parts.
  static absl::StatusOr<WorkloadKey> Parse(std::string_view key);

  friend bool operator==(const WorkloadKey&, const WorkloadKey&) = default;
};

// Queues the workloads whose CacheWarmup may have to change: a workload with changed annotations or
// spec, the workloads of a namespace with a changed label, the owner of a changed CacheWarmup, and
// standalone pods that appear or disappear. Status changes queue nothing.
class AnnotationTriggers {
 public:
  // Both references must outlive this object; it must outlive the threads of `cluster`. Keys of
  // `queue` are WorkloadKeys.
  AnnotationTriggers(ClusterCache& cluster, kube::WorkQueue& queue)
      : cluster_(cluster), queue_(queue) {}

  // Call before ClusterCache::Start().
  void Attach();
  // Queues every workload of every kind; called when this replica becomes the leader.
  void AddEverything();

 private:
  void OnWorkload(const kube::Change& change, std::string_view kind);
  void OnPod(const kube::Change& change);
  void OnNamespace(const kube::Change& change);
  void OnWarmup(const kube::Change& change);
  // Queues all workloads of one namespace; of all namespaces if `ns` is empty.
  void AddAll(const std::string& ns, Duration delay);
  // Queues the standalone pods of the namespace and the CacheWarmups created for such pods.
  void AddStandalonePods(const std::string& ns, Duration delay);
  bool IsNamespaceOptedIn(const std::string& ns) const;

  ClusterCache& cluster_;
  kube::WorkQueue& queue_;
};

}  // namespace cachewarm::observe
