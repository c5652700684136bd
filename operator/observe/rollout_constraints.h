// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "lib/api/labels.h"
#include "operator/observe/cluster_cache.h"
#include "operator/plan/snapshot.h"

namespace cachewarm::observe {

// What the workload of `warmup` and the PodDisruptionBudgets of its pods promise. Sources: apps/v1
// Deployment and StatefulSet, Argo Rollouts v1alpha1, LeaderWorkerSet v1 (in groups); other kinds
// do not say in pods what has to serve. Fields of unexpected shape count as absent.
//
// A warmup whose pods are known by labels alone (spec.selector, a KServe service) hears what all
// workloads promise that make such pods (owners.h), and the strictest counts for every pod: what
// forbids a hold for one forbids it for all, and one that lacks pods is not made up for by another
// that has more than it promised. One answer for all pods, because a warmup has one flag that says
// whether the next pod gets a gate; a pod that could have been held starts cold, which is always
// right.
//
// A budget counts where it selects the labels of the template, or those by which the workload's
// pods are known. It may cover more pods than the workload's: what it lacks, or has to spare, is
// then counted as if it were the workload's own.
plan::RolloutConstraints ReadRolloutConstraints(const ClusterCache& cluster,
                                                const api::CacheWarmup& warmup);

// The label keys that the PodDisruptionBudgets and Services of a namespace select by. A pod without
// these is no pod of theirs: a builder is never Ready, and would else keep a budget from ever being
// met, and get requests of a Service that publishes addresses which are not ready.
std::set<std::string> SelectedLabelKeys(const ClusterCache& cluster, const std::string& ns);

// "25%" or a number of `total`; `fallback` for anything else. Percentages are rounded up or down as
// the API does it for the field. Never negative.
int64_t ScaledValue(const codec::Json* value, int64_t total, bool round_up, int64_t fallback);

// True when a LabelSelector object selects `labels`. An empty one selects everything, as it does in
// policy/v1; one with an unknown operator selects nothing.
bool SelectsLabels(const codec::Json& selector, const api::Labels& labels);

}  // namespace cachewarm::observe
