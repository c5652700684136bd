// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "operator/observe/cluster_cache.h"
#include "operator/plan/snapshot.h"

// Pods that could not be made or started because of what we put into them, as Kubernetes tells it:
// by the ReplicaFailure condition of a workload, and by the events FailedCreate (controllers) and
// FailedMount (kubelet). What does not name our volume, gate or path is not ours to answer for; the
// path in the pod is always the same, the one on the node is `root`.
namespace cachewarm::observe {

// The newest failure to create a pod of `snapshot`: its warmup, workload, pods, rehearsal
// and root are read.
// A condition counts while it is there. An event stays for an hour whatever happened since, so it
// counts only when it is younger than the last change of the warmup's condition Ready, and, while
// that is withdrawn, than a rehearsal that was allowed. What is total of whoever has a template for
// such pods (owners.h) counts too, pods or not.
plan::CreateFailure FindCreateFailure(const ClusterCache& cluster, const plan::Snapshot& snapshot);

// By uid of a pod of `pods`: kubelet's words on our volume, for pods whose containers have not
// started.
std::map<std::string, std::string> FindMountFailures(
    const ClusterCache& cluster, const std::vector<std::shared_ptr<const api::Pod>>& pods,
    std::string_view root);

}  // namespace cachewarm::observe
