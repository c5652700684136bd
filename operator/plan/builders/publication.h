// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "operator/plan/builders/transitions.h"
#include "operator/plan/plan_context.h"

// Ends builds. Pure.
namespace cachewarm::plan {

struct BuildFailure {
  BuildEvent event;
  std::string message;
  std::string reason = {};  // replaces that of the table (transitions.h); empty: the table's
};

// Returns the seconds that the containers of the Jobs of this build ran, each multiplied by its
// number of devices. A container whose pod is gone is not counted, unless JobGpuSeconds() was
// written to BuilderStatus::gpu_seconds before.
double JobGpuSeconds(const Context& context, const api::BuilderStatus& builder);

// Ends the build of `builder` without a bundle.
void FailBuild(const Context& context, Effects& effects, api::BuilderStatus& builder,
               BuildFailure failure);

// A build whose container has not started.
struct PendingBuild {
  WallTime since;             // compile.pendingSeconds count from this time
  std::string subject;        // for users: "Job llama-ab12-1"
  std::string reported = {};  // message of the API server or kubelet about it; may be empty
};

// Fails the build if compile.pendingSeconds have passed, and returns true. Otherwise requeues the
// warmup at their end.
bool EndAfterPending(const Context& context, Effects& effects, api::BuilderStatus& builder,
                     const PendingBuild& pending);

// Fails the build if the API server rejected `job`, and returns true. `job` may be null.
bool EndRejectedJob(const Context& context, Effects& effects, api::BuilderStatus& builder,
                    const BuilderJob* job);

// Publishes the captured bundle of `builder` or, if it must be proven first (spec.compile.proof),
// begins the proof. Fails the build if the bundle is suspended.
void CompleteBuild(const Context& context, Builds& builds, api::BuilderStatus& builder);

// Adds the captured bundle of `builder` to the published ones, from where all nodes get it, and
// ends the build because of `event`.
void PublishBundle(const Context& context, Builds& builds, api::BuilderStatus& builder,
                   BuildEvent event);

}  // namespace cachewarm::plan
