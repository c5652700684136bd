// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/wanted_bundles.h"

#include "cli/cluster/list_objects.h"
#include "lib/api/cache_warmup.h"
#include "lib/api/node_cache.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/resource.h"

namespace cachewarm::cli {
namespace {

void Add(const Digest& digest, WantedBundles& to) {
  if (!digest.empty()) {
    to.digests.insert(digest);
  }
}

absl::Status AddNodeCache(const codec::Json& object, WantedBundles& to) {
  CW_ASSIGN_OR_RETURN(const api::NodeCache node, api::DecodeNodeCache(object));
  for (const api::WantedWarmup& warmup : node.spec.warmups) {
    for (const api::WantedBundle& bundle : warmup.bundles) {
      Add(bundle.digest, to);
      to.keys.insert(bundle.key);
    }
  }
  for (const api::CaptureRequest& capture : node.spec.captures) {
    Add(capture.base_digest, to);
    to.keys.insert(capture.key);
  }
  for (const api::CaptureStatus& capture : node.status.captures) {
    Add(capture.digest, to);
  }
  return absl::OkStatus();
}

absl::Status AddCacheWarmup(const codec::Json& object, WantedBundles& to) {
  CW_ASSIGN_OR_RETURN(const api::CacheWarmup warmup, api::DecodeCacheWarmup(object));
  for (const api::BundleStatus& bundle : warmup.status.bundles) {
    Add(bundle.digest, to);
    to.keys.insert(bundle.key);
  }
  for (const api::BuilderStatus& builder : warmup.status.builders) {
    to.keys.insert(builder.key);
    if (builder.captured.has_value()) {
      Add(builder.captured->digest, to);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WantedBundles> ReadWantedBundles(kube::Client& client, const Clock& clock,
                                                std::stop_token stop) {
  WantedBundles wanted;
  const ListedObjects warmups{
      .on_object = [&](const codec::Json& object) { return AddCacheWarmup(object, wanted); },
      .on_restart = {}};
  const ListedObjects nodes{
      .on_object = [&](const codec::Json& object) { return AddNodeCache(object, wanted); },
      .on_restart = {}};
  // CacheWarmups before and after the NodeCaches: a bundle moves from the status of a CacheWarmup
  // to NodeCaches, and a captured one from the status of a NodeCache to that of a CacheWarmup.
  CW_RETURN_IF_ERROR(ForEachObject(client, kube::kCacheWarmups, "", clock, warmups, stop));
  CW_RETURN_IF_ERROR(ForEachObject(client, kube::kNodeCaches, "", clock, nodes, stop));
  CW_RETURN_IF_ERROR(ForEachObject(client, kube::kCacheWarmups, "", clock, warmups, stop));
  return wanted;
}

}  // namespace cachewarm::cli
