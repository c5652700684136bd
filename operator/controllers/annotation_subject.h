// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "lib/base/clock.h"
#include "operator/annotations/decide.h"
#include "operator/observe/annotation_triggers.h"
#include "operator/observe/cluster_cache.h"

namespace cachewarm::controllers {

// Time for which the CacheWarmup of standalone pods is kept after the last of these pods is gone,
// so that the next run starts warm. Long enough for weekly jobs.
inline constexpr Duration kStandaloneGrace{7 * 24 * 3'600'000LL};
// If a namespace has more CacheWarmups of standalone pods than this, each is kept only for
// annotations::kRemovalGrace instead of kStandaloneGrace. Otherwise labels that differ with every
// run would fill the namespace with CacheWarmups.
inline constexpr size_t kStandaloneMany = 32;
// Maximum number of CacheWarmups of standalone pods in a namespace. Limited because the admission
// policy evaluates each of them for every new pod.
inline constexpr size_t kStandaloneMax = 64;

// A workload, or a set of standalone pods, whose annotations are reconciled.
struct AnnotationSubject {
  // The object that events are about: the workload; for standalone pods, one of the pods, or their
  // CacheWarmup if no pod is left.
  kube::Object regarding;
  annotations::AnnotationRequest request;  // complete except for `now` and `present`
  std::vector<annotations::Note> problems;
};

// Returns the workload with this key. If the key's kind is Namespace, returns the standalone pods
// (workloads::StandalonePodsOf) of the CacheWarmup that the key names. Returns nullopt if the
// workload does not exist, or if neither standalone pods nor their CacheWarmup exist.
std::optional<AnnotationSubject> FindAnnotationSubject(const observe::ClusterCache& cluster,
                                                       const observe::WorkloadKey& key);

}  // namespace cachewarm::controllers
