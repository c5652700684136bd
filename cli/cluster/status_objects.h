// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/api/cache_warmup.h"
#include "lib/api/node_cache.h"
#include "lib/base/clock.h"
#include "lib/kube/client/client.h"

namespace cachewarm::cli {

struct StatusQuery {
  std::string ns;           // empty: all namespaces
  std::string warmup;       // empty: all warmups of the namespace
  bool with_nodes = false;  // also read the NodeCaches
};

struct StatusObjects {
  std::vector<api::CacheWarmup> warmups;  // sorted by namespace and name
  std::vector<api::NodeCache> nodes;      // sorted by name
  std::vector<std::string> notes;         // sentences about objects that could not be read
};

// Reads the objects once. Objects that cannot be decoded, and NodeCaches that cannot be listed, are
// in the notes. Errors: NOT_FOUND if the named warmup does not exist; the API server's error for
// CacheWarmups.
absl::StatusOr<StatusObjects> ReadStatusObjects(kube::Client& client, const Clock& clock,
                                                const StatusQuery& query, std::stop_token stop);

// Called on the thread of WatchStatusObjects(). An error ends the watch.
struct StatusWatcher {
  std::function<absl::Status(const StatusObjects&)> on_change;
  std::function<void(const std::string&)> on_note;  // a failure that is tried again
};

// Lists and watches the objects until `stop` is requested; calls `on_change` with all of them after
// each change. After an expired watch lists again. Returns OK after `stop`, or the error of
// `on_change`.
absl::Status WatchStatusObjects(kube::Client& client, const Clock& clock, const StatusQuery& query,
                                const StatusWatcher& watcher, std::stop_token stop);

}  // namespace cachewarm::cli
