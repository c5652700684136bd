// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/api/cache_warmup.h"
#include "lib/api/node_cache.h"
#include "lib/codec/json_fwd.h"

// Bodies of server-side applies. Pure.
namespace cachewarm::render {

// Everything that field manager cw-<uid> owns in the NodeCache of one node. An empty spec gives a
// body without spec members, so that the API server removes what the manager had.
codec::Json NodeCacheApply(const std::string& node, const api::NodeCacheSpec& spec);

// The NodeCache itself, owned by the Node, for field manager kOperatorManager.
codec::Json NodeCacheBase(const std::string& node, const std::string& node_uid);

// The status, for field manager kOperatorManager. Carries the resourceVersion of the warmup that
// was planned on: a plan from a stale store is refused with 409.
codec::Json StatusApply(const api::CacheWarmup& warmup, const api::WarmupStatus& status);

// Merge patch that sets or removes kInjectLabel.
codec::Json InjectLabelPatch(bool inject);

}  // namespace cachewarm::render
