// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "lib/base/clock.h"
#include "operator/annotations/decide.h"
#include "operator/observe/annotation_triggers.h"
#include "operator/observe/cluster_cache.h"

namespace cachewarm::controllers {

// Time that the CacheWarmup of standalone pods is kept while none of them exists, so that their
// next run starts warm. Covers weekly jobs.
inline constexpr Duration kStandaloneGrace{7 * 24 * 3'600'000LL};
// Above this number of such CacheWarmups per namespace, they are kept only for
// annotations::kRemovalGrace. Labels that differ with every run would otherwise fill the namespace.
inline constexpr size_t kStandaloneMany = 32;
// Maximum number of such CacheWarmups per namespace. The admission policy evaluates each of them
// for every new pod.
inline constexpr size_t kStandaloneMax = 64;

// A workload, or a set of standalone pods, whose annotations are reconciled.
struct AnnotationSubject {
  kube::Object regarding;                  // object of the events: the workload or one of the pods
  annotations::AnnotationRequest request;  // complete except for `now` and `present`
  std::vector<annotations::Note> problems;
};

// Returns the workload with this key. For a key with the kind Namespace, returns the standalone
// pods (workloads::StandalonePodsOf) of the CacheWarmup in the key. Returns nullopt if the workload
// does not exist; for standalone pods, if neither a pod nor the CacheWarmup exists.
std::optional<AnnotationSubject> FindAnnotationSubject(const observe::ClusterCache& cluster,
                                                       const observe::WorkloadKey& key);

}  // namespace cachewarm::controllers
