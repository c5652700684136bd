// SPDX-License-Identifier: Apache-2.0
#include "lib/api/node_cache.h"

#include "lib/api/json/parts.h"
#include "lib/api/json/tables.h"

namespace cachewarm::api {
namespace {

// Returns the uid of the Node that owns the object. The owner reference need not be the
// controller's, because garbage collection follows every owner reference.
std::string NodeUid(codec::Reader& object) {
  std::string uid;
  object.Object("metadata", [&](codec::Reader& meta) {
    meta.List("ownerReferences", 64, [&](codec::Reader& owner) {
      std::string kind;
      owner.Read("kind", kind);
      if (kind == "Node") {
        owner.Read("uid", uid);
      }
    });
  });
  return uid;
}

}  // namespace

absl::StatusOr<NodeCache> DecodeNodeCache(const codec::Json& object) {
  codec::Reader reader(object, "");
  ObjectMeta meta;
  json::ReadMeta(reader, meta);
  NodeCache out;
  out.node_uid = NodeUid(reader);
  reader.Object("spec", [&](codec::Reader& spec) {
    json::ReadObject(json::NodeCacheSpecFields(), spec, out.spec);
  });
  reader.Object("status", [&](codec::Reader& status) {
    json::ReadObject(json::NodeCacheStatusFields(), status, out.status);
  });
  if (!reader.status().ok()) {
    return reader.status();
  }
  out.name = std::move(meta.name);
  out.uid = std::move(meta.uid);
  return out;
}

codec::Json EncodeSpec(const NodeCacheSpec& spec) {
  return json::WriteObject(json::NodeCacheSpecFields(), spec);
}
codec::Json EncodeStatus(const NodeCacheStatus& status) {
  return json::WriteObject(json::NodeCacheStatusFields(), status);
}

std::string_view Name(BundleState value) {
  return json::TextOf(json::kBundleStateWords, value);
}
std::string_view Name(CaptureState value) {
  return json::TextOf(json::kCaptureStateWords, value);
}

}  // namespace cachewarm::api
