// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/kube/runtime/work_queue.h"
#include "operator/observe/cluster_cache.h"

namespace cachewarm::observe {

// Returns true if the label cachewarm.io/warm of the namespace requests warmups for all workloads
// with accelerators.
bool IsOptedIn(const codec::Json& ns);

// The key of a workload in the work queue, such as "Deployment/default/llama".
struct WorkloadKey {
  std::string kind;
  kube::ObjectName name;

  std::string ToString() const { return kind + "/" + name.ToString(); }
  // Errors: INVALID_ARGUMENT unless the key has three parts.
  static absl::StatusOr<WorkloadKey> Parse(std::string_view key);

  friend bool operator==(const WorkloadKey&, const WorkloadKey&) = default;
};

// Queues workloads whose CacheWarmup may have to be created, changed or deleted. Reacts to changed
// annotations or specs of workloads, changed labels of namespaces, and changed CacheWarmups.
// Ignores changes of a status.
class AnnotationTriggers {
 public:
  // `cluster` and `queue` must outlive this object; this object must outlive the threads of
  // `cluster`. The keys of `queue` are WorkloadKeys.
  AnnotationTriggers(ClusterCache& cluster, kube::WorkQueue& queue)
      : cluster_(cluster), queue_(queue) {}

  // Call before ClusterCache::Start().
  void Attach();
  // Queues every workload of every kind, and the deleted Jobs that still have a CacheWarmup. Call
  // when this replica becomes the leader.
  void AddEverything();

 private:
  void OnWorkload(const kube::Change& change, std::string_view kind);
  void OnNamespace(const kube::Change& change);
  void OnWarmup(const kube::Change& change);
  // Queues all workloads of the namespace `ns`, or of all namespaces if `ns` is empty.
  void AddAll(const std::string& ns, Duration delay);
  // Queues the Jobs of all CacheWarmups of the namespace that have a time of expiry, because only
  // a limited number of them is kept.
  void AddRetained(const std::string& ns);

  ClusterCache& cluster_;
  kube::WorkQueue& queue_;
};

}  // namespace cachewarm::observe
