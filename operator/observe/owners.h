// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lib/api/labels.h"
#include "operator/observe/cluster_cache.h"

namespace cachewarm::observe {

// Maximum number of workloads that one warmup reads; the others are ignored.
inline constexpr size_t kOwnersMax = 100;

// Returns the workloads of a namespace whose pod templates have all of `labels`: Deployments,
// Rollouts (also by a template taken from a Deployment), StatefulSets, LeaderWorkerSets, CronJobs
// and Jobs. Excludes finished Jobs and builder Jobs. `labels` must not be empty.
//
// Does not use ownerReferences of pods: a workload updated with Recreate, or waiting for its first
// pod, has no pods just when its constraints matter, and a Deployment would have to be guessed from
// its ReplicaSets, which are not watched. Misses workloads whose pods get these labels from
// elsewhere than the template.
std::vector<kube::Object> FindOwners(const ClusterCache& cluster, const std::string& ns,
                                     const api::Labels::Texts& labels);

}  // namespace cachewarm::observe
