// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/api/cache_warmup.h"
#include "operator/plan/builders/transitions.h"
#include "operator/plan/plan_context.h"

// Decides when a key may be built again after a failure or a miss, and numbers the attempts. Pure.
namespace cachewarm::plan {

// The election that would begin a build.
struct BuildTrigger {
  BuildEvent event;
  std::string revision;
  WallTime created{};  // when the elected pod was created
};

// Returns the hash of the settings in `spec` that can change the result of a build.
std::string HashSettings(const api::WarmupSpec& spec);

// True if a build of the key may begin now. `last` is its latest build, or null. Otherwise requeues
// the warmup at the end of the backoff, unless too many bundles of the key are suspended.
bool MayBuild(const Context& context, Builds& builds, const api::BuilderStatus* last,
              const BuildTrigger& trigger);

// Begins a build of `key`, and returns its status. Replaces the status of the key's latest build.
api::BuilderStatus& StartBuild(const Context& context, Builds& builds, const LiveKey& key,
                               const BuildTrigger& trigger);

}  // namespace cachewarm::plan
