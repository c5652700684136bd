// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/api/node_cache.h"
#include "lib/codec/json_fwd.h"

// Renders the bodies of server-side apply requests. Pure.
namespace cachewarm::render {

// Returns all fields that field manager cw-<uid of a warmup> owns in the NodeCache of one node. An
// empty spec yields a body without spec members, so that the API server removes the manager's
// fields.
codec::Json NodeCacheApply(const std::string& node, const api::NodeCacheSpec& spec);

// Returns all fields that field manager kOperatorManager owns in the NodeCache of one node: the
// owner reference to the Node, spec.node and spec.evict.
codec::Json NodeCacheBase(const std::string& node, const std::string& node_uid,
                          const api::NodeOffer& offer,
                          const std::vector<api::EvictableTree>& evict = {});

// Returns a CacheWarmup with this status, for field manager kOperatorManager. It contains the
// resourceVersion of `warmup`, so that the API server rejects the status (409) if the warmup has
// changed since it was read.
codec::Json StatusApply(const api::CacheWarmup& warmup, const api::WarmupStatus& status);

// Returns a merge patch that sets or removes kInjectLabel.
codec::Json InjectLabelPatch(bool inject);

}  // namespace cachewarm::render
