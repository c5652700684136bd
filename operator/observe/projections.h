// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/codec/json_fwd.h"

// What the operator keeps of each object that it watches: pure functions that cut a decoded object
// down in place, before a store holds it. A cluster has thousands of pods and nodes; everything
// that no decision reads is dropped here. Objects of unexpected shape are cut, never refused.
namespace cachewarm::observe {

// Keeps identity, labels, our annotations, the controlling owner, where and why it is (not) bound,
// requests and run-as of containers, the group it is scheduled with, our volume, conditions,
// container statuses, a restartPolicy other than Always, tolerations and which nodes it may run on.
// The rest of its affinity and the annotations of others are kept of a gated pod only: the patch
// that releases it needs them.
void ProjectPod(codec::Json& pod);

// Keeps identity, labels, taints, unschedulable, allocatable, conditions, operating system and the
// beginning of the boot ID.
void ProjectNode(codec::Json& node);

// Deployment or StatefulSet: keeps spec whole (the template is rehearsed as it is) and of status
// the replica counts and conditions.
void ProjectWorkload(codec::Json& workload);

// Keeps identity, spec and status; of finished Jobs that are not ours only what selects and makes
// their pods.
void ProjectJob(codec::Json& job);

// Keeps identity and labels.
void ProjectNamespace(codec::Json& object);

// An event of events.k8s.io: keeps identity, what it is about, its words and times.
void ProjectEvent(codec::Json& event);

// PodDisruptionBudget: keeps identity, the selector and the two numbers of the status.
void ProjectBudget(codec::Json& budget);

// Keeps name and selector: a cluster has thousands.
void ProjectService(codec::Json& service);

// Drops what the API server adds for others to read (managedFields are gone already).
void ProjectOwn(codec::Json& object);

}  // namespace cachewarm::observe
