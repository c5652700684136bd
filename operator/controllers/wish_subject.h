// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "lib/base/clock.h"
#include "operator/observe/wish_triggers.h"
#include "operator/observe/world.h"
#include "operator/wishes/decide.h"

namespace cachewarm::controllers {

// Of pods that no workload stands for: how long their CacheWarmup is kept while none of them is
// there. Their next run is to start warm; jobs of a week are common, rarer ones are not.
inline constexpr Duration kLooseGrace{7 * 24 * 3'600'000LL};
// With more CacheWarmups of such pods in a namespace they are kept for wishes::kGrace only: labels
// that differ with every run would fill it.
inline constexpr size_t kLooseMany = 32;
// No more are made: the admission policy looks at each of them for every new pod.
inline constexpr size_t kLooseMax = 64;

// What is asked whether it wants to be warmed.
struct WishSubject {
  kube::Object told;    // events are about this: the workload, or one of the pods
  wishes::Asked asked;  // but for the time and the CacheWarmup that is there
  std::vector<wishes::Note> problems;
};

// The workload of this key; or, of a key that names a namespace's kind and a CacheWarmup in it, the
// pods for which that CacheWarmup stands (workloads::LoosePodsOf). Nothing when there is no such
// workload, or neither such a pod nor the CacheWarmup.
std::optional<WishSubject> WishSubjectOf(const observe::World& world,
                                         const observe::WorkloadKey& key);

}  // namespace cachewarm::controllers
