// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "lib/base/clock.h"
#include "operator/annotations/decide.h"
#include "operator/observe/annotation_triggers.h"
#include "operator/observe/cluster_cache.h"

namespace cachewarm::controllers {

// Of pods that no workload stands for: how long their CacheWarmup is kept while none of them is
// there. Their next run is to start warm; jobs of a week are common, rarer ones are not.
inline constexpr Duration kStandaloneGrace{7 * 24 * 3'600'000LL};
// With more CacheWarmups of such pods in a namespace they are kept for annotations::kRemovalGrace
// only: labels that differ with every run would fill it.
inline constexpr size_t kStandaloneMany = 32;
// No more are made: the admission policy looks at each of them for every new pod.
inline constexpr size_t kStandaloneMax = 64;

// What is request whether it wants to be warmed.
struct AnnotationSubject {
  kube::Object regarding;  // events are about this: the workload, or one of the pods
  annotations::AnnotationRequest request;  // but for the time and the CacheWarmup that is there
  std::vector<annotations::Note> problems;
};

// The workload of this key; or, of a key that names a namespace's kind and a CacheWarmup in it, the
// pods for which that CacheWarmup stands (workloads::StandalonePodsOf). Nothing when there is no
// such workload, or neither such a pod nor the CacheWarmup.
std::optional<AnnotationSubject> FindAnnotationSubject(const observe::ClusterCache& cluster,
                                                       const observe::WorkloadKey& key);

}  // namespace cachewarm::controllers
