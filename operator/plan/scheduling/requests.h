// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "lib/codec/json_fwd.h"
#include "operator/plan/snapshot.h"

namespace cachewarm::plan {

// What the scheduler counts for one pod: containers and restartable init containers summed, at
// least the largest other init container, plus overhead; "pods": 1. A limit stands where a
// container names no request. Quantities that cannot be read count as nothing.
Resources RequestsOf(const codec::Json& pod_spec);

// Accelerators that one container asks for, all kinds summed. Where it asks for none as resources,
// each of its claims (dynamic resource allocation) counts as one: what devices a claim stands for,
// and how many, is not in the pod.
int AcceleratorsOf(const codec::Json& container);

}  // namespace cachewarm::plan
