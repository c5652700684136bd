// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/wanted_bundles.h"

#include <functional>
#include <utility>

#include "lib/api/cache_warmup.h"
#include "lib/api/node_cache.h"
#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/error.h"
#include "lib/kube/core/request.h"
#include "lib/kube/core/watcher.h"

namespace cachewarm::cli {
namespace {

constexpr int kObjectsPerPage = 100;
constexpr int kWantedListTries = 3;

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

using AddObject = std::function<absl::Status(const codec::Json& object)>;

// Passes every object of a resource to `add`, some of them more than once if the list expires.
absl::Status ForEachObject(kube::Client& client, const kube::Resource& resource, const Clock& clock,
                           const AddObject& add, std::stop_token stop) {
  kube::Watcher pages({}, kObjectsPerPage);
  for (int expired = 0; !stop.stop_requested();) {
    const kube::WatcherAction action = pages.Next(clock.Monotonic(), 0.0);
    if (action.type == kube::WatcherActionType::kWatch) {
      return absl::OkStatus();  // all objects are listed
    }
    if (action.type == kube::WatcherActionType::kSleep) {
      SleepFor(clock, action.delay, stop);
      continue;
    }
    absl::Status added;
    const auto page = client.DoList(
        List(resource, {.limit = action.page_items, .continue_token = action.continue_token}),
        [&](const codec::Json& object) {
          if (added.ok()) {
            added = add(object);
          }
        },
        stop);
    CW_RETURN_IF_ERROR(Annotate(added, resource.plural));
    if (page.ok()) {
      pages.OnPage(codec::TextAt(*page, {"metadata", "continue"}), "");
      continue;
    }
    const bool has_expired = absl::IsOutOfRange(page.status()) && ++expired < kWantedListTries;
    const bool is_too_long = kube::IsTooLong(page.status()) && action.page_items > 1;
    if (!has_expired && !is_too_long) {
      return Annotate(page.status(), resource.plural);
    }
    pages.OnListFailure(page.status(), clock.Monotonic());
  }
  return absl::CancelledError("interrupted");
}

}  // namespace

absl::StatusOr<WantedBundles> ReadWantedBundles(kube::Client& client, const Clock& clock,
                                                std::stop_token stop) {
  WantedBundles wanted;
  // CacheWarmups first: a bundle moves from their status to the NodeCaches.
  CW_RETURN_IF_ERROR(ForEachObject(
      client, kube::kCacheWarmups, clock,
      [&](const codec::Json& object) { return AddCacheWarmup(object, wanted); }, stop));
  CW_RETURN_IF_ERROR(ForEachObject(
      client, kube::kNodeCaches, clock,
      [&](const codec::Json& object) { return AddNodeCache(object, wanted); }, stop));
  return wanted;
}

}  // namespace cachewarm::cli
