// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/model/snapshot.h"
#include "operator/observe/cluster_cache.h"

namespace cachewarm::observe {

// Returns the object of spec.workloadRef; null if there is none or its kind is unsupported.
kube::Object FindReferenced(const ClusterCache& cluster, const api::CacheWarmup& warmup);

// Resolves the workload of `warmup` from its workloadRef, template or selector.
model::Workload ResolveWorkload(const ClusterCache& cluster, const api::CacheWarmup& warmup);

// Returns true if the Job has completed or failed, according to its conditions.
bool IsFinished(const kube::CachedObject& job);

// Returns true if the workload, or any workload that the selector matches, has fewer pods than it
// should have. This is a sign that its pods are being rejected.
bool LacksPods(const ClusterCache& cluster, const api::CacheWarmup& warmup);

}  // namespace cachewarm::observe
