// SPDX-License-Identifier: Apache-2.0
#include "lib/api/cache_warmup.h"

#include "lib/api/json/parts.h"
#include "lib/api/json/tables.h"

namespace cachewarm::api {

absl::StatusOr<CacheWarmup> DecodeCacheWarmup(const codec::Json& object) {
  codec::Reader reader(object, "");
  ObjectMeta meta;
  json::ReadMeta(reader, meta);
  CacheWarmup out;
  reader.Require("spec");
  reader.Object("spec", [&](codec::Reader& spec) {
    json::ReadObject(json::WarmupSpecFields(), spec, out.spec);
  });
  reader.Object("status", [&](codec::Reader& status) {
    json::ReadObject(json::WarmupStatusFields(), status, out.status);
  });
  if (!reader.status().ok()) {
    return reader.status();
  }
  out.ns = std::move(meta.ns);
  out.name = std::move(meta.name);
  out.uid = std::move(meta.uid);
  out.resource_version = std::move(meta.resource_version);
  out.generation = meta.generation;
  out.labels = meta.labels.AsMap();
  out.annotations = meta.annotations.AsMap();
  out.deleting = meta.deleting;
  return out;
}

codec::Json EncodeSpec(const WarmupSpec& spec) {
  return json::WriteObject(json::WarmupSpecFields(), spec);
}
codec::Json EncodeStatus(const WarmupStatus& status) {
  return json::WriteObject(json::WarmupStatusFields(), status);
}

int64_t& CountOf(StartCounts& counts, StartResult result) {
  switch (result) {
    case StartResult::kBuilder:
      return counts.builder;
    case StartResult::kCold:
      return counts.cold;
    case StartResult::kHit:
      return counts.hit;
    case StartResult::kPartial:
      return counts.partial;
    case StartResult::kMiss:
      return counts.miss;
    case StartResult::kInert:
      return counts.inert;
    case StartResult::kHollow:
      return counts.hollow;
    case StartResult::kUnknown:
      break;
  }
  return counts.unknown;
}

int64_t CountOf(const StartCounts& counts, StartResult result) {
  StartCounts copy = counts;
  return CountOf(copy, result);
}

std::string_view Name(Builder value) {
  return json::TextOf(json::kBuilderWords, value);
}
std::string_view Name(Proof value) {
  return json::TextOf(json::kProofWords, value);
}
std::string_view Name(GateMode value) {
  return json::TextOf(json::kGateModeWords, value);
}
std::string_view Name(BuilderState value) {
  return json::TextOf(json::kBuilderStateWords, value);
}
std::string_view Name(StartResult value) {
  return json::TextOf(json::kStartResultWords, value);
}

}  // namespace cachewarm::api
