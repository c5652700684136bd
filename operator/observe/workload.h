// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/observe/world.h"
#include "operator/plan/snapshot.h"

namespace cachewarm::observe {

// The object that spec.workloadRef names; null when there is none, or it is no kind that we know.
kube::Object FindReferenced(const World& world, const api::CacheWarmup& warmup);

// Finds what `warmup` is about: the object that workloadRef names, its template or its selector.
plan::Workload ResolveWorkload(const World& world, const api::CacheWarmup& warmup);

// A Job that has ended, well or not: a condition says so.
bool IsFinished(const kube::KeptObject& job);

// The workload, or of those that a selector means any, wants more pods than it has: a sign that
// something refuses them.
bool LacksPods(const World& world, const api::CacheWarmup& warmup);

}  // namespace cachewarm::observe
