// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "lib/api/kubernetes.h"
#include "lib/codec/json_fwd.h"

// Pods that run together or not at all. Pure.
namespace cachewarm::plan {

// A PodTemplateSpec, or the object of a pod, as a pod for what is asked of pods below.
api::Pod AsPod(std::shared_ptr<const codec::Json> pod_template);

// The group that a pod belongs to, by the labels and annotations of LeaderWorkerSet, JobSet,
// PodGroup (scheduler-plugins), Volcano, KAI, Ray and Kueue's plain pod groups; "" for none. Two
// pods of one namespace are of one group when it is equal.
std::string GroupOf(const api::Pod& pod);

// The pod shows signs of a gang that we do not know: how many belong to it, and what its scheduler
// makes of a member that waits, cannot be told.
bool IsOfUnknownGang(const api::Pod& pod);

// The pod waits at the gate of somebody else, Kueue's for one.
bool HasOtherGate(const api::Pod& pod);

// Kueue decides when the pod may start, or has decided it. From then on it has quota: a pod of a
// Job shows no more of that than a label, and one that stood at Kueue's gate no more than another.
bool IsOfKueue(const api::Pod& pod);

}  // namespace cachewarm::plan
