// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/api/cache_warmup.h"
#include "lib/api/node_cache.h"
#include "lib/codec/json_fwd.h"

// Objects in which no field has its default.
namespace cachewarm::api {

std::string KeyOf(char digit);  // 64 times `digit`
Digest DigestOfText(const std::string& text);

WarmupSpec FullWarmupSpec();
WarmupStatus FullWarmupStatus();
NodeCacheSpec FullNodeCacheSpec();
NodeCacheStatus FullNodeCacheStatus();

// The smallest valid objects.
codec::Json MinimalWarmup();
codec::Json MinimalNodeCache();

}  // namespace cachewarm::api
