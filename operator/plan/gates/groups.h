// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "lib/api/kubernetes.h"
#include "lib/codec/json_fwd.h"

// Groups of pods that run together or not at all. Pure.
namespace cachewarm::plan {

// Wraps a PodTemplateSpec, or the object of a pod, as the pod that the functions below take.
api::Pod AsPod(std::shared_ptr<const codec::Json> pod_template);

// Returns the name of a pod's group, from the labels and annotations of LeaderWorkerSet, JobSet,
// PodGroup (scheduler-plugins), Volcano, KAI, Ray and Kueue's plain pod groups; "" if there is
// none. Two pods of one namespace are in the same group if their names are equal.
std::string GroupOf(const api::Pod& pod);

// True if the pod belongs to a gang of an unsupported kind: neither the number of its members nor
// the scheduler's reaction to a held member is known.
bool IsOfUnknownGang(const api::Pod& pod);

// True if the pod has a scheduling gate other than cachewarm's, for example Kueue's.
bool HasOtherGate(const api::Pod& pod);

// True if Kueue decides, or has decided, when the pod may start. An admitted pod has quota and no
// gate of Kueue any more; then only its labels or annotations show that Kueue manages it.
bool IsOfKueue(const api::Pod& pod);

}  // namespace cachewarm::plan
