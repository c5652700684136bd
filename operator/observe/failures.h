// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "operator/observe/cluster_cache.h"
#include "operator/plan/snapshot.h"

// Finds pods that could not be created or started because of the injection: from the condition
// ReplicaFailure of a workload and from the events FailedCreate (controllers) and FailedMount
// (kubelet). Ignores messages that do not mention cachewarm's volume, gate or path. The path inside
// the pod is fixed; the path on the node is `root`.
namespace cachewarm::observe {

// Returns the newest failure to create a pod of the warmup in `snapshot`. Reads the snapshot's
// warmup, workload, pods, dry run and root. A condition is considered while it is present. An event
// (kept for an hour by the API server) is considered only if it is newer than the last transition
// of the warmup's condition Ready and, while injection is suspended, newer than a successful dry
// run. Workloads with a matching template (owners.h) are considered even without pods.
plan::CreateFailure FindCreateFailure(const ClusterCache& cluster, const plan::Snapshot& snapshot);

// Returns, by pod uid, kubelet's message about the cache volume, for those of `pods` whose
// containers have not started.
std::map<std::string, std::string> FindMountFailures(
    const ClusterCache& cluster, const std::vector<std::shared_ptr<const api::Pod>>& pods,
    std::string_view root);

}  // namespace cachewarm::observe
