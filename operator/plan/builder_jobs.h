// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "operator/plan/round.h"

// Builders that are pods of a Job, because the workload has no pod to elect. Called by builders.cc.
namespace cachewarm::plan {

// compile.builder asks for a Job, or leaves it to us and the workload has no pods.
bool UsesJob(const Round& round);

// What a build by Job is made of: the template, compile.overrides and compile.requests. Another one
// is tried at once, whatever became of the last.
std::string RevisionOfJob(const Round& round);

// A copy has no side effects, a node of the key has a device that no pod of the workload needs, no
// quota keeps one from being made, and the cluster's cap is not reached; else notes why in
// Round::job_refusal.
bool MayMakeJob(Round& round, const LiveKey& key);

// Names the Job in `builder` and wishes it.
void MakeJob(Round& round, const LiveKey& key, api::BuilderStatus& builder);

// Ends the build of a Job whose pod holds what a pod of the workload needs and has nowhere else: a
// device, or a place in the quota. True when it did.
bool GiveWay(Round& round, api::BuilderStatus& builder);

// The Job has had its time and no pod of it is on a node: the quota, or the room, that it would
// need may be what the pods have that would wait for it.
bool MayNeverBegin(const Round& round, const api::BuilderStatus& builder);

// Follows a Job until its container has started. `key` is null when nothing needs it any more.
void FollowJob(Round& round, const LiveKey* key, api::BuilderStatus& builder);

// Jobs of ours that no running builder names.
void DeleteDoneJobs(Round& round);

}  // namespace cachewarm::plan
