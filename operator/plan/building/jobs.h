// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "operator/plan/plan_context.h"

// Builders that are pods of a Job, because the workload has no pod to elect. Called by builders.cc;
// job_refusal.h says when one may be made.
namespace cachewarm::plan {

// compile.builder asks for a Job, or leaves it to us and the workload has no pods.
bool UsesJob(const PlanContext& context);

// What a build by Job is made of: the template, compile.overrides and compile.requests. Another one
// is tried at once, whatever became of the last.
std::string JobRevision(const PlanContext& context);

// Names the Job in `builder` and wishes it.
void MakeJob(PlanContext& context, const LiveKey& key, api::BuilderStatus& builder);

// Ends the build of a Job whose pod holds what a pod of the workload needs and has nowhere else: a
// device, or a place in the quota. True when it did.
bool EndBlockingJob(PlanContext& context, api::BuilderStatus& builder);

// Follows a Job until its container has started. `key` is null when nothing needs it any more.
void FollowJob(PlanContext& context, const LiveKey* key, api::BuilderStatus& builder);

// Jobs of ours that no running builder names.
void DeleteDoneJobs(PlanContext& context);

}  // namespace cachewarm::plan
