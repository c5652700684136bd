// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lib/api/labels.h"
#include "operator/observe/cluster_cache.h"

namespace cachewarm::observe {

// Of so many workloads one warmup hears what they promise; of more, those beyond are not asked.
inline constexpr size_t kOwnersMax = 100;

// The workloads of a namespace that make pods with all of `labels`: Deployments, Rollouts,
// StatefulSets, LeaderWorkerSets, CronJobs and Jobs, by what their pod templates say (of a Rollout
// without one, the template that it borrows). No finished Job and no builder Job of ours. `labels`
// is not empty.
//
// Not by the ownerReferences of their pods: a workload that is rolled out with Recreate, or waits
// for its first pod, has none at the very moment at which its promise counts, and from a
// ReplicaSet, which we do not watch, its Deployment could only be guessed. What is missed so is a
// workload whose pods get these labels from somebody else than its template.
std::vector<kube::Object> FindOwners(const ClusterCache& cluster, const std::string& ns,
                                     const api::Labels::Texts& labels);

}  // namespace cachewarm::observe
