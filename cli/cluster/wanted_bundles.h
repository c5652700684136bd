// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/kube/client/client.h"

namespace cachewarm::cli {

// The bundles that a cluster needs, and the keys that its workloads use.
struct WantedBundles {
  std::set<Digest> digests;
  std::set<std::string> keys;
};

// Reads all NodeCaches and CacheWarmups; finds also a bundle that moves between them meanwhile. A
// bundle is wanted if a node is to have it (NodeCache spec) or has just captured it (NodeCache
// status), or if a CacheWarmup records it (its status). A key is used if a bundle or build of it is
// among them. Errors: the API server's error; INVALID_ARGUMENT if an object cannot be decoded,
// because its bundles are then unknown.
absl::StatusOr<WantedBundles> ReadWantedBundles(kube::Client& client, const Clock& clock,
                                                std::stop_token stop);

}  // namespace cachewarm::cli
