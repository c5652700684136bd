// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lib/api/labels.h"
#include "operator/observe/cluster_cache.h"

namespace cachewarm::observe {

// Maximum number of workloads that FindOwners() returns; further ones are ignored.
inline constexpr size_t kOwnersMax = 100;

// Returns the workloads of a namespace whose pod templates have all of `labels`. Considers
// Deployments, Rollouts (which may use the template of a Deployment), StatefulSets,
// LeaderWorkerSets, CronJobs and Jobs. Excludes finished Jobs and builder Jobs. `labels` must not
// be empty.
//
// Does not follow the ownerReferences of pods, for two reasons. A workload that is updated with
// Recreate, or waits for its first pod, has no pods just when its availability constraints or
// failures are read. Pods of a Deployment refer only to a ReplicaSet, which the operator does not
// watch. The price: workloads whose pods do not get these labels from the template are not found.
std::vector<kube::Object> FindOwners(const ClusterCache& cluster, const std::string& ns,
                                     const api::Labels::Texts& labels);

}  // namespace cachewarm::observe
