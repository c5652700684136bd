// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "lib/api/labels.h"
#include "operator/model/snapshot.h"
#include "operator/observe/cluster_cache.h"

namespace cachewarm::observe {

// Reads the availability constraints of `warmup` from its workload and from the
// PodDisruptionBudgets of its pods. Supports apps/v1 Deployments and StatefulSets, Argo Rollouts
// v1alpha1, and LeaderWorkerSets v1 (counted in groups of pods). Other kinds have no fields for
// availability. A field with an unexpected type counts as absent.
//
// If a warmup selects pods by labels (spec.selector or a KServe service), combines the constraints
// of all workloads whose template has these labels (owners.h). One result applies to all these
// pods, because the warmup has a single flag that adds the gate to new pods. The strictest value
// counts: if one workload forbids holding pods, no pod is held, and surplus pods of one workload do
// not offset missing pods of another. Too strict is safe: a pod that is not held only starts cold.
//
// A PodDisruptionBudget applies if its selector matches the labels of the template or, without a
// template, the labels that identify the workload's pods. If the budget also covers pods of other
// workloads, its whole deficit or surplus counts for this workload.
model::RolloutConstraints ReadRolloutConstraints(const ClusterCache& cluster,
                                                 const api::CacheWarmup& warmup);

// Returns the label keys in the selectors of a namespace's PodDisruptionBudgets and Services. The
// pod of a builder Job must not carry these labels: because this pod is never Ready, a budget that
// selects it would not be met, and a Service that publishes not-ready addresses would send it
// requests.
std::set<std::string> SelectedLabelKeys(const ClusterCache& cluster, const std::string& ns);

// Returns `value` if it is a number, that share of `total` if it is a percentage such as "25%",
// else `fallback`. Rounds a percentage up if `round_up` is set, else down. Never negative.
int64_t ScaledValue(const codec::Json* value, int64_t total, bool round_up, int64_t fallback);

// Returns true if a LabelSelector selects `labels`. An empty selector selects everything, as in
// policy/v1; a selector with an unknown operator selects nothing.
bool SelectsLabels(const codec::Json& selector, const api::Labels& labels);

}  // namespace cachewarm::observe
