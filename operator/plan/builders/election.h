// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "operator/plan/plan_context.h"

// Elects the pods and Jobs that build the keys that are due. Pure.
namespace cachewarm::plan {

// Returns the running pods of `key` that may become the builder of a key without a bundle, earliest
// start first. Excludes pods that may have started with a bundle that is suspended now: their
// directories have its files, so a capture would publish them again.
std::vector<const PodView*> BuilderPods(const Context& context, const Builds& builds,
                                        const LiveKey& key);

// Writes the running `pod` and its node to `builder`, and records the event BuilderElected.
void ElectPod(const Context& context, Builds& builds, api::BuilderStatus& builder,
              const PodView& pod);

// Reserves capacity for a held pod on a prepared node with the key's GPU type and CPU class.
// Returns false if no such node has capacity.
bool ReserveCapacity(const Context& context, Builds& builds, const LiveKey& key,
                     const PodView& pod);

// Begins a build of each key that is due and has no running build, if it may be built now
// (attempts.h).
void ElectBuilders(const Context& context, Builds& builds);

}  // namespace cachewarm::plan
