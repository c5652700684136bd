// SPDX-License-Identifier: Apache-2.0
#include "operator/render/applied.h"

#include "lib/api/names.h"
#include "lib/codec/json_value.h"

namespace cachewarm::render {

using codec::Json;

namespace {

Json Object(const char* kind, Json metadata) {
  return {{"apiVersion", std::string(api::kApiVersion)},
          {"kind", kind},
          {"metadata", std::move(metadata)}};
}

}  // namespace

Json NodeCacheApply(const std::string& node, const api::NodeCacheSpec& spec) {
  Json body = Object("NodeCache", {{"name", node}});
  Json encoded = api::EncodeSpec(spec);
  if (!encoded.empty()) {
    body["spec"] = std::move(encoded);
  }
  return body;
}

Json NodeCacheBase(const std::string& node, const std::string& node_uid,
                   const api::NodeOffer& offer, const std::vector<api::EvictableTree>& evict) {
  const Json owner = {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", node_uid}};
  Json body = Object("NodeCache", {{"name", node}, {"ownerReferences", Json::array({owner})}});
  if (Json spec = api::EncodeSpec({.node = offer, .evict = evict}); !spec.empty()) {
    body["spec"] = std::move(spec);
  }
  return body;
}

Json StatusApply(const api::CacheWarmup& warmup, const api::WarmupStatus& status) {
  Json body = Object("CacheWarmup", {{"name", warmup.name},
                                     {"namespace", warmup.ns},
                                     {"resourceVersion", warmup.resource_version}});
  body["status"] = api::EncodeStatus(status);
  return body;
}

Json InjectLabelPatch(bool inject) {
  const Json value = inject ? Json("true") : Json(nullptr);
  return {{"metadata", {{"labels", {{std::string(api::kInjectLabel), value}}}}}};
}

}  // namespace cachewarm::render
