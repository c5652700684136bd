// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/codec/json_fwd.h"

// Functions that reduce a watched object, in place, to the members that the operator reads, before
// it is stored: a cluster has thousands of pods and nodes. Pure. They never fail; unexpected
// members are dropped.
namespace cachewarm::observe {

// Keeps identity, labels, cachewarm annotations, the controlling owner, the node or the reason for
// being unscheduled, requests and run-as of containers, the pod group, the cache volume,
// conditions, container statuses, a restartPolicy other than Always, tolerations and required node
// affinity. For a gated pod, also keeps all affinity and annotations, because the releasing patch
// needs them.
void ProjectPod(codec::Json& pod);

// Keeps identity, labels, taints, unschedulable, allocatable, conditions, operating system and a
// prefix of the boot ID.
void ProjectNode(codec::Json& node);

// Deployment, StatefulSet and other kinds: keeps the whole spec (dry runs use the template) and the
// replica counts and conditions of the status.
void ProjectWorkload(codec::Json& workload);

// Keeps identity, spec and status. For finished Jobs other than builder Jobs, keeps only selector
// and template of the spec.
void ProjectJob(codec::Json& job);

// Keeps identity and labels.
void ProjectNamespace(codec::Json& object);

// Event of events.k8s.io: keeps identity, regarding, note and times.
void ProjectEvent(codec::Json& event);

// PodDisruptionBudget: keeps identity, the selector and the two counts of the status.
void ProjectBudget(codec::Json& budget);

// Keeps name and selector; a cluster has thousands of Services.
void ProjectService(codec::Json& service);

// Drops metadata that only other programs read (managedFields are already dropped).
void ProjectOwn(codec::Json& object);

}  // namespace cachewarm::observe
