// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/observe/cluster_cache.h"
#include "operator/plan/snapshot.h"

namespace cachewarm::observe {

// The object that spec.workloadRef names; null when there is none, or it is no kind that we know.
kube::Object FindReferenced(const ClusterCache& cluster, const api::CacheWarmup& warmup);

// Finds what `warmup` is about: the object that workloadRef names, its template or its selector.
plan::Workload ResolveWorkload(const ClusterCache& cluster, const api::CacheWarmup& warmup);

// A Job that has ended, well or not: a condition says so.
bool IsFinished(const kube::CachedObject& job);

// The workload, or of those that a selector means any, matches more pods than it has: a sign that
// something refuses them.
bool LacksPods(const ClusterCache& cluster, const api::CacheWarmup& warmup);

}  // namespace cachewarm::observe
