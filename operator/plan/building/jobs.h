// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "operator/plan/plan_context.h"

// Builder Jobs, for workloads without a pod to elect. Called by builders.cc; job_refusal.h decides
// whether one may be created.
namespace cachewarm::plan {

// True if compile.builder is Job, or is Auto and the workload has no pods.
bool UsesJob(const PlanContext& context);

// Returns a hash of the template, compile.overrides and compile.requests. A changed revision is
// built at once, independent of the last result.
std::string JobRevision(const PlanContext& context);

// Names the Job in `builder` and requests it.
void MakeJob(PlanContext& context, const LiveKey& key, api::BuilderStatus& builder);

// Fails the build of a Job whose pod occupies a device or quota that a pod of the workload needs
// and cannot get elsewhere. Returns true if it did.
bool EndBlockingJob(PlanContext& context, api::BuilderStatus& builder);

// Follows a Job until its container has started. `key` is null if the key is no longer live.
void FollowJob(PlanContext& context, const LiveKey* key, api::BuilderStatus& builder);

// Deletes builder Jobs that no running builder names.
void DeleteDoneJobs(PlanContext& context);

}  // namespace cachewarm::plan
