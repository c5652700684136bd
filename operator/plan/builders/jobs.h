// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "operator/plan/plan_context.h"

// Makes and follows builder Jobs, for workloads that have no pod to be the builder. Called by
// builders.cc and election.cc; job_refusal.h decides whether a Job may be created.
namespace cachewarm::plan {

// True if compile.builder is Job, or if it is Auto and the workload has no pods.
bool UsesJob(const Context& context);

// Returns the revision of a builder Job: a hash of the template, compile.overrides and
// compile.requests. A changed revision starts the next build at once, even if the last build
// failed.
std::string JobRevision(const Context& context);

// Returns the Job, also one whose creation was rejected; nullptr if there is none.
const BuilderJob* FindJob(const Context& context, const std::string& name);

// Returns the message of the pod's container; if it has none, `job_message`.
std::string TerminationMessage(const PodView* pod, const std::string& job_message);

// Plans the creation of the current Job of `builder` (api::CurrentJob), whose pod may run on
// `nodes`. The Job of a proof gets Context::strict_env.
void RequestJob(const Context& context, Builds& builds, const std::vector<size_t>& nodes,
                const api::BuilderStatus& builder);

// Sets the name of the Job in `builder` and plans the creation of the Job.
void MakeJob(const Context& context, Builds& builds, const LiveKey& key,
             api::BuilderStatus& builder);

// Fails the build of a Job whose pod occupies a device or quota that a pod of the workload needs
// and cannot get elsewhere. Returns true in that case, else false.
bool EndBlockingJob(const Context& context, Builds& builds, api::BuilderStatus& builder);

// Updates `builder` from the state of its Job; call until the Job's container has started. `key` is
// null if the builder's key is no longer in use, because no pod has its image or no node its GPU
// type and CPU class; the build then fails.
void FollowJob(const Context& context, Builds& builds, const LiveKey* key,
               api::BuilderStatus& builder);

// Plans the deletion of builder Jobs whose build has ended. The Job of a captured builder stays
// until the first start of its pod is counted.
void DeleteDoneJobs(const Context& context, Builds& builds);

}  // namespace cachewarm::plan
