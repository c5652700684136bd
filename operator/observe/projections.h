// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/codec/json_fwd.h"

// Each function removes from a watched object, in place, the members that the operator does not
// read. This saves memory in the store, because a cluster has thousands of pods and nodes.
// "Identity" means apiVersion, kind, name, namespace, uid and similar metadata. Pure. Never fails:
// drops members with an unexpected type.
namespace cachewarm::observe {

// Keeps:
//  - identity, labels, owners, and the annotations of cachewarm and of pod groups;
//  - where the pod may run: node, scheduling gates, node selector, required node affinity,
//  tolerations;
//  - of each container: name, image, requests and limits, user, whether it has a readiness probe,
//    and the mounts that conflict with the cache path;
//  - the pod group, the overhead, the operating system, the cache volume, and a restartPolicy other
//    than Always;
//  - the phase, the IP, the conditions and the container statuses.
// For a gated pod, also keeps all affinity and annotations, because the patch that removes the gate
// needs them.
void ProjectPod(codec::Json& pod);

// Keeps identity, labels, taints, unschedulable, allocatable, conditions, operating system and a
// prefix of the boot ID.
void ProjectNode(codec::Json& node);

// Deployment, StatefulSet and other kinds: keeps the whole spec (dry runs use the template) and the
// replica counts and conditions of the status.
void ProjectWorkload(codec::Json& workload);

// Keeps identity, spec and status. For completed Jobs other than builder Jobs, keeps only selector
// and template of the spec.
void ProjectJob(codec::Json& job);

// Keeps identity and labels.
void ProjectNamespace(codec::Json& object);

// Event of events.k8s.io: keeps identity, regarding, note and times.
void ProjectEvent(codec::Json& event);

// PodDisruptionBudget: keeps identity, the selector, and desiredHealthy and currentHealthy of the
// status.
void ProjectBudget(codec::Json& budget);

// Keeps only name and selector, because a cluster has thousands of Services.
void ProjectService(codec::Json& service);

// ResourceSlice: keeps identity, driver, node name, the name and generation of the pool, and the
// attributes of each device that api::DecodeResourceSlice() reads.
void ProjectResourceSlice(codec::Json& slice);

// CacheWarmup and NodeCache: drops managedFields and kubectl's last-applied-configuration.
void ProjectOwn(codec::Json& object);

}  // namespace cachewarm::observe
