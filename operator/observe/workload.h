// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/observe/world.h"
#include "operator/plan/snapshot.h"

namespace cachewarm::observe {

// Finds what `warmup` is about: the object that workloadRef names, its template or its selector.
plan::Workload ResolveWorkload(const World& world, const api::CacheWarmup& warmup);

// The newest failure to create a pod of the workload that is ours to answer for: its ReplicaFailure
// condition names our volume, gate or path, or speaks of hostPath where the template has none.
// StatefulSets and Jobs report such failures by events alone; for them a rehearsal is repeated
// instead (operator/admission).
plan::CreateFailure FindCreateFailure(const World& world, const api::CacheWarmup& warmup);

// The workload wants more pods than it has: a sign that something refuses them.
bool LacksPods(const World& world, const api::CacheWarmup& warmup);

}  // namespace cachewarm::observe
