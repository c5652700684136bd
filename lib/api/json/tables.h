// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/api/cache_warmup.h"
#include "lib/api/condition.h"
#include "lib/api/json/fields.h"
#include "lib/api/json/limits.h"
#include "lib/api/node_cache.h"

// The tables of both resources, and limits and tables that they share.
namespace cachewarm::api::json {

inline constexpr Limit kName{.bytes = kNameBytes};
inline constexpr Limit kLabel{.bytes = kLabelBytes};
inline constexpr Limit kLabelMap{.items = 32, .bytes = kLabelBytes};
inline constexpr Limit kGpuType{.bytes = kGpuTypeBytes};
inline constexpr Limit kCpuClass{.bytes = 256};
inline constexpr Limit kImage{.bytes = 1024};
inline constexpr Limit kHash{.bytes = 64};
inline constexpr Limit kColumn{.bytes = 32};
inline constexpr Limit kReason{.bytes = 128};
// The CRD counts characters, which have up to four bytes each.
inline constexpr Limit kMessage{.bytes = kMessageBytes, .read_bytes = 4 * kMessageBytes};

inline constexpr Field<Condition> kCondition[] = {
    Required<&Condition::type>("type", kName),
    Always<&Condition::status>("status", {.bytes = 16}),
    Always<&Condition::reason>("reason", kReason),
    Always<&Condition::message>("message", kMessage),
    Optional<&Condition::observed_generation>("observedGeneration"),
    Optional<&Condition::last_transition_time>("lastTransitionTime"),
};

void CheckCacheChoice(codec::Reader& reader, const CacheChoice& cache);

inline constexpr Limit kCacheName{.bytes = 40, .pattern = &IsDnsLabel, .words = kDnsLabel.words};

inline constexpr Field<CacheChoice> kCacheChoice[] = {
    Required<&CacheChoice::name>("name", kCacheName),
    Optional<&CacheChoice::env>("env", kEnvName),
    Optional<&CacheChoice::path>("path", kRelativePath),
    Optional<&CacheChoice::include>("include", {.items = kIncludesMax, .bytes = kGlobBytes}),
    Check<&CheckCacheChoice>(),
};

inline constexpr Field<EvictableTree> kEvictableTree[] = {
    Required<&EvictableTree::generation>("generation", kTreeName),
    Optional<&EvictableTree::warmup_uid>("warmupUID", kUid),
    Optional<&EvictableTree::unlinked_time>("unlinkedTime"),
};

Rows<WarmupSpec> WarmupSpecFields();
Rows<WarmupStatus> WarmupStatusFields();
Rows<NodeCacheSpec> NodeCacheSpecFields();
Rows<NodeCacheStatus> NodeCacheStatusFields();

}  // namespace cachewarm::api::json
