// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/random.h"
#include "lib/http/server.h"
#include "lib/kube/client/client.h"
#include "lib/kube/client/http_client.h"
#include "lib/kube/runtime/controller.h"
#include "lib/kube/runtime/store.h"
#include "operator/config.h"
#include "operator/metrics.h"

namespace cachewarm::op {

// Dependencies of the daemon; tests use a fake clock and API server. All references must outlive
// the daemon.
struct DaemonDependencies {
  kube::Client& client;
  const Clock& clock;
  Random random;
  Log& log;
  metrics::Registry& registry;
  const Metrics& metrics;
};

// Composition root of the operator. Starts server, reflectors, held-pod controller, leader election
// and the leader's controllers, in this order; stops them in reverse. The held-pod controller needs
// only the pod and warmup stores; the leader's controllers need all stores. Single use.
class Daemon {
 public:
  Daemon(const Config& config, const DaemonDependencies& parts);
  ~Daemon();

  // Blocks until `stop` (returns OK) or a fatal error (port in use, Lease lost). The process then
  // exits, so that the next leader starts from the state in the API server.
  absl::Status Run(std::stop_token stop);

  // Port of /metrics, /healthz and /readyz; 0 until Run() listens.
  uint16_t port() const { return port_.load(); }
  // Returns why the daemon is not ready, as readable text; "" if it is ready. It becomes ready once
  // all stores are synced and the webhook, if installed, is served. While it stops, it is not
  // ready.
  std::string WhyNotReady() const;
  bool IsReady() const { return WhyNotReady().empty(); }
  // Returns the time that Run() may take after `stop`: process::kStopWithin plus the webhook's
  // drain delay while it is served.
  Duration StopLimit() const;

 private:
  struct Components;

  absl::StatusOr<std::unique_ptr<http::Server>> Serve();
  // Blocks until the stores have synced, and logs while it waits; returns false after `stop`.
  bool AwaitStores(const std::vector<const kube::Store*>& stores, std::stop_token stop);
  // Blocks until the stores that the held-pod controller needs have synced; returns false after
  // `stop`.
  bool AwaitHeldPodStores(std::stop_token stop);
  // If the webhook is served, blocks until kubelet has seen that this replica is not ready.
  void AwaitEndpointRemoval(std::stop_token stop);
  void RunHeldPodController(std::stop_token stop);
  // Discards the keys of the leader's queues until RunLeaderControllers(), because nothing
  // processes them on a standby. A new leader queues every object.
  void DiscardKeys();
  absl::Status RunElection(std::stop_token stop);
  void Lead(std::stop_token stop);
  // Runs the leader's controllers once all stores have synced.
  void RunLeaderControllers(std::stop_token stop);
  // Runs a controller until `stop`; counts its reconciles under the name in `options`.
  void RunController(kube::ControllerOptions options, kube::WorkQueue& queue,
                     kube::Reconcile reconcile, std::stop_token stop);

  Config config_;
  DaemonDependencies parts_;
  std::unique_ptr<Components> components_;
  std::atomic<uint16_t> port_{0};
  std::atomic<bool> stopping_{false};
};

// Returns a client for the API server of `config` that reports to `metrics`. `http` receives the
// HTTP client that the returned client uses. All references must outlive the returned client.
absl::StatusOr<std::unique_ptr<kube::Client>> ConnectToCluster(const Config& config,
                                                               const Clock& clock, Random random,
                                                               const Metrics& metrics,
                                                               std::unique_ptr<http::Client>& http);

}  // namespace cachewarm::op
