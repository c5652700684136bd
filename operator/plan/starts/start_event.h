// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "lib/api/cache_warmup.h"
#include "lib/api/kubernetes.h"
#include "operator/plan/values.h"

namespace cachewarm::plan {

// Returns the event about the first start of an injected pod:
//   StartedWarm   hit, partial
//   StartedCold   cold
//   CacheMissed   miss, inert, hollow; a warning
// Its note has the seconds of `sample`, and its cause or else a remedy. Returns nullopt for starts
// of builders, which have events of their build, and for unknown results. Pure.
std::optional<EventRequest> MakeStartEvent(const api::Pod& pod, const api::StartSample& sample);

}  // namespace cachewarm::plan
