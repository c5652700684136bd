// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "operator/plan/plan_context.h"

// Proves the captured bundle of a builder Job: a second Job starts with it on the builder's node,
// while the variables of spec.compile.proof make its engine exit instead of compiling
// (docs/design/0029-proof-of-a-bundle.md). Pure.
namespace cachewarm::plan {

// Sets the state to kProving. `builder.captured` must be set.
void BeginProof(const Context& context, Builds& builds, api::BuilderStatus& builder);

// Updates `builder` from the state of its proof; call while `builder.proof` is set. The bundle is
// published once the Job's pod is ready. The build fails if the engine refuses the bundle, or if
// the Job is lost. `key` is null if the image or the nodes of the key are gone.
void FollowProof(const Context& context, Builds& builds, const LiveKey* key,
                 api::BuilderStatus& builder);

// Suspends the bundle, so that no node has it, and fails the build. `why` names the Job and the
// engine's own words.
void RefuseBundle(const Context& context, Builds& builds, api::BuilderStatus& builder,
                  const std::string& why);

}  // namespace cachewarm::plan
