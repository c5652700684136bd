// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "agent/metrics.h"
#include "agent/remote/remote_connection.h"
#include "agent/remote/remote_entries.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// Dependencies and limits of the endpoint; references must outlive it.
struct RemoteEndpointOptions {
  const fs::Dir& root;
  const Clock& clock;
  Log& log;
  Metrics& metrics;
  RemoteLimits limits;
  RemoteEntryLimits entry_limits;
};

// Serves the entries of trees to torch's Redis remote caches, on a Unix socket in each tree
// ("redis/endpoint.sock"). Pods reach the socket through the mount of their own tree only, so a pod
// reads and writes the entries of its own warmup and user, exactly as with the files of the tree.
// Reads and writes through the socket raise file events in the tree, and are recorded as if the pod
// had accessed the files.
//
// Clients are untrusted: connections, memory, sizes and times are limited (RemoteLimits,
// RemoteEntryLimits). Runs on its own thread. Thread-safe.
class RemoteEndpoint {
 public:
  // Starts the thread. RESOURCE_EXHAUSTED if no file descriptor is left.
  static absl::StatusOr<std::unique_ptr<RemoteEndpoint>> Start(
      const RemoteEndpointOptions& options);

  RemoteEndpoint(const RemoteEndpoint&) = delete;
  RemoteEndpoint& operator=(const RemoteEndpoint&) = delete;
  // Closes all connections and removes the sockets.
  virtual ~RemoteEndpoint() = default;

  // Sets the trees to serve, by their paths below the root. Sockets that a pod removed are made
  // again. Never blocks.
  virtual void Serve(std::set<std::string> trees) = 0;

 protected:
  RemoteEndpoint() = default;
};

}  // namespace cachewarm::agent
