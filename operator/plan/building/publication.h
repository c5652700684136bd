// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/plan/plan_context.h"

// Ends builds whose bundle is captured. Pure.
namespace cachewarm::plan {

// Publishes the captured bundle of `builder` or, if it must be proven first (spec.compile.proof),
// begins the proof. Fails the build if the bundle is suspended.
void CompleteBuild(PlanContext& context, api::BuilderStatus& builder);

// Records the captured bundle of `builder` in status.bundles, from where all nodes get it, and ends
// the build.
void PublishBundle(PlanContext& context, api::BuilderStatus& builder);

// Adds `bundle` to status.suspendedBundles, which drops its oldest entry if it is full.
void AddSuspended(PlanContext& context, api::SuspendedBundle bundle);

}  // namespace cachewarm::plan
