// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "lib/api/kubernetes.h"
#include "lib/codec/json_fwd.h"

// Recognizes groups of pods that must run together or not at all. Pure.
namespace cachewarm::model {

// Converts a PodTemplateSpec, or the JSON of a pod, to the pod that the functions below take.
api::Pod AsPod(std::shared_ptr<const codec::Json> pod_template);

// Returns the name of a pod's group; "" if it has none. Reads the labels and annotations of
// LeaderWorkerSet, JobSet, PodGroup (scheduler-plugins), Volcano, KAI, Ray, and Kueue's plain pod
// groups. Two pods of one namespace are in the same group if their groups have equal names.
std::string GroupOf(const api::Pod& pod);

// True if the pod belongs to a gang (pods that are scheduled all together) of an unsupported kind.
// Such pods are never held, because neither the gang's size nor the scheduler's reaction to a held
// member is known.
bool IsOfUnknownGang(const api::Pod& pod);

// True if the pod has a scheduling gate other than cachewarm's, for example Kueue's.
bool HasOtherGate(const api::Pod& pod);

// True if Kueue decides, or has decided, when the pod may start. Kueue removes its gate from a pod
// that it admits; after that, only labels or annotations show that Kueue manages the pod.
bool IsOfKueue(const api::Pod& pod);

}  // namespace cachewarm::model
