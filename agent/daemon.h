// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "absl/status/status.h"
#include "agent/config.h"
#include "agent/facts_watcher.h"
#include "agent/loop.h"
#include "agent/metrics.h"
#include "agent/watch/own_node_cache.h"
#include "agent/watch/status_writer.h"
#include "lib/http/server.h"

namespace cachewarm::agent {

// Dependencies of the daemon; all must outlive the daemon. Tests pass a fake clock and API server.
struct DaemonDependencies {
  kube::Client& client;
  bundle::Store& store;
  const Clock& clock;
  Random random;
  Log& log;
  metrics::Registry& registry;
  Metrics& metrics;
  NodeProbes probes;
  std::string version;
  FactsWatcherOptions facts_options;
  std::string boot_id;  // of the kernel; empty: unknown
};

// Creates and runs the parts of the agent. Startup order: server, trees of the hardware before a
// reboot, node facts, status writer, root directory, loop (its first iteration repairs the links
// that pods mount), watch of the NodeCache. The server stops last. When the node's facts change (a
// driver was installed or replaced), root directory and loop start again. Run() can be called only
// once.
class Daemon {
 public:
  Daemon(const Config& config, const DaemonDependencies& dependencies);

  // Blocks until `stop`, then returns OK within 2 s. Errors: the port is in use, or a metric cannot
  // be registered.
  absl::Status Run(std::stop_token stop);

  // Returns the port of /metrics, /healthz and /readyz; 0 before Run() listens. Thread-safe.
  uint16_t port() const { return port_.load(); }
  bool IsReady() const { return is_ready_.load(); }

 private:
  absl::StatusOr<std::unique_ptr<http::Server>> Serve();
  // After a reboot, retires trees that were compiled for another CPU class, without waiting for the
  // GPU driver: containers have started already, and read their caches within seconds.
  void RetireAfterReboot();
  // Waits until facts are known. If the GPU driver does not answer in time, sets the facts without
  // a GPU type. Returns false on `stop`.
  bool AwaitFacts(std::stop_token stop);
  void OnFacts(GpuObservation gpu);
  void RunOnNode(std::stop_token stop);
  struct LockedRoot {
    fs::Dir dir;
    fs::Fd lock;
  };
  absl::StatusOr<LockedRoot> AcquireRoot(const GpuObservation& node, std::stop_token stop);
  // Waits for a usable root directory; until then the NodeCache status reports why the directory is
  // unusable. `stop` is requested when the facts of the node change or the daemon stops,
  // `daemon_stop` only when the daemon stops.
  std::optional<LockedRoot> AwaitRoot(const GpuObservation& node, StatusWriter& writer,
                                      std::stop_token stop, std::stop_token daemon_stop);
  void ReportUnusable(const GpuObservation& node, const std::string& why, StatusWriter& writer);
  void RunLoop(const fs::Dir& root, const GpuObservation& node, StatusWriter& writer,
               std::stop_token stop, std::stop_token daemon_stop);
  void StartWatch(std::stop_token stop);
  void OnNodeCache(std::shared_ptr<const api::NodeCache> node_cache);
  // Returns the result of /healthz: an error if only a restart of the agent can help.
  absl::Status Health() const;

  const Config config_;
  DaemonDependencies dependencies_;
  kube::Runtime runtime_;
  OwnNodeCache own_;
  FactsWatcher facts_;
  std::atomic<uint16_t> port_{0};
  std::atomic<bool> is_ready_{false};

  mutable std::mutex mutex_;
  std::shared_ptr<const api::NodeCache> latest_;
  Loop* loop_ = nullptr;  // null unless RunLoop() runs
  std::optional<GpuObservation> gpu_;
  std::condition_variable_any gpu_known_;
  std::optional<std::stop_source> on_node_;  // a stop request ends AwaitRoot(), RunLoop()
  std::jthread watching_;
};

}  // namespace cachewarm::agent
