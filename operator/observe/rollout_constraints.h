// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "lib/api/labels.h"
#include "operator/observe/cluster_cache.h"
#include "operator/plan/snapshot.h"

namespace cachewarm::observe {

// Reads the availability constraints of `warmup` from its workload and the PodDisruptionBudgets of
// its pods. Sources: apps/v1 Deployment and StatefulSet, Argo Rollouts v1alpha1, LeaderWorkerSet v1
// (in groups); other kinds do not specify availability in pods. A field with an unexpected type
// reads as absent.
//
// If a warmup selects pods by labels (spec.selector, a KServe service), combines the constraints of
// all workloads with such a template (owners.h). The strictest value applies to every pod: one
// workload that forbids holds forbids them for all, and missing pods of one are not offset by a
// surplus of another. There is one result for all pods because the warmup has one flag that adds
// the gate to new pods; a pod that is not held starts cold, which is always safe.
//
// A PodDisruptionBudget applies if it selects the labels of the template, or those that identify
// the workload's pods. The budget may also cover pods of other workloads; its deficit or surplus is
// then attributed to this workload.
plan::RolloutConstraints ReadRolloutConstraints(const ClusterCache& cluster,
                                                const api::CacheWarmup& warmup);

// Returns the label keys in the selectors of a namespace's PodDisruptionBudgets and Services. A
// builder's pod must not carry these labels: it is never Ready, so it would keep a budget from
// being met and would get requests from a Service that publishes not-ready addresses.
std::set<std::string> SelectedLabelKeys(const ClusterCache& cluster, const std::string& ns);

// Returns "25%" of `total`, or the number itself; `fallback` for any other value. Rounds
// percentages up or down as the API specifies for the field. Never negative.
int64_t ScaledValue(const codec::Json* value, int64_t total, bool round_up, int64_t fallback);

// Returns true if a LabelSelector selects `labels`. An empty selector selects everything, as in
// policy/v1; a selector with an unknown operator selects nothing.
bool SelectsLabels(const codec::Json& selector, const api::Labels& labels);

}  // namespace cachewarm::observe
