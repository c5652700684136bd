// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "operator/model/snapshot.h"
#include "operator/observe/cluster_cache.h"

// Finds pods that could not be created or started because cachewarm injected a volume or gate.
// Reads the condition ReplicaFailure of workloads and the events FailedCreate (of controllers) and
// FailedMount (of kubelet). A message counts only if it mentions cachewarm's volume, gate, path
// inside the pod, or path on the node (`root`). In a condition, the word "hostPath" is enough if
// the pod template has no hostPath volume of its own, because the word can then mean only the
// injected volume.
namespace cachewarm::observe {

// Returns the newest failure to create a pod of the warmup in `snapshot`. Reads the snapshot's
// warmup, workload, pods, dry run and root. Also considers the workloads whose template has the
// warmup's labels (owners.h), even if they have no pods.
//
// The condition `ReplicaFailure` of a workload counts while it is True. An event exists for an
// hour, even if its cause is removed. Therefore it counts only if it is newer than the last
// transition of the warmup's condition `Ready`. If `Ready` is False with the reason
// InjectionRejected, and the last dry run was allowed, the event must also be newer than that dry
// run.
model::CreateFailure FindCreateFailure(const ClusterCache& cluster,
                                       const model::Snapshot& snapshot);

// Returns kubelet's messages about the cache volume by pod uid. Considers only `pods` whose
// containers have not started.
std::map<std::string, std::string> FindMountFailures(
    const ClusterCache& cluster, const std::vector<std::shared_ptr<const api::Pod>>& pods,
    std::string_view root);

}  // namespace cachewarm::observe
