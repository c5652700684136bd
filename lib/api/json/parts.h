// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lib/api/cache_warmup.h"
#include "lib/api/kubernetes.h"
#include "lib/api/node_cache.h"
#include "lib/codec/reader.h"

// Readers and encoders of the parts of an object. Readers record the first problem in `reader`.
namespace cachewarm::api::json {

void ReadMeta(codec::Reader& object, ObjectMeta& out);
void ReadSpec(codec::Reader& reader, WarmupSpec& out);
void ReadStatus(codec::Reader& reader, WarmupStatus& out);
void ReadSpec(codec::Reader& reader, NodeCacheSpec& out);
void ReadStatus(codec::Reader& reader, NodeCacheStatus& out);
void ReadPod(codec::Reader& object, Pod& out);

// Reads a Kubernetes ResourceList.
void ReadResources(codec::Reader& reader, std::string_view name, Resources& out);

void ReadStarts(codec::Reader& reader, Starts& out);
codec::Json EncodeStarts(const Starts& starts);

void ReadEvictable(codec::Reader& reader, EvictableTree& out);
codec::Json EncodeEvictable(const EvictableTree& tree);

void ReadCaches(codec::Reader& reader, std::vector<CacheChoice>& out);
codec::Json EncodeCaches(const std::vector<CacheChoice>& caches);

}  // namespace cachewarm::api::json
