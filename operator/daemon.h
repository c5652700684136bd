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

// Composition root of the operator. Starts the HTTP server, the reflectors, the check of the CRDs,
// the webhook, the held-pod controller, leader election and the leader's controllers, in this
// order. The held-pod controller starts when the pod store has synced, the election when the check
// of the CRDs has passed, and the leader's controllers when all stores have synced. Run() may be
// called once.
class Daemon {
 public:
  Daemon(const Config& config, const DaemonDependencies& parts);
  ~Daemon();

  // Runs until `stop`, then returns OK; returns the error if the port is in use or the Lease was
  // lost. After an error the process must exit, so that the next leader starts from the state in
  // the API server.
  absl::Status Run(std::stop_token stop);

  // Port of /metrics, /healthz and /readyz; 0 until Run() listens.
  uint16_t port() const { return port_.load(); }
  // Returns why the daemon is not ready, as readable text; "" if it is ready. The daemon becomes
  // ready once the check of the CRDs has passed, all stores are synced and the webhook, if
  // installed, is served. It is not ready while stopping.
  std::string WhyNotReady() const;
  bool IsReady() const { return WhyNotReady().empty(); }
  // Returns the time that Run() may take after `stop`: process::kStopWithin plus, while the webhook
  // is served, the webhook's drain delay.
  Duration StopLimit() const;

 private:
  struct Components;

  absl::StatusOr<std::unique_ptr<http::Server>> Serve();
  // Blocks until the stores have synced, and logs while it waits; returns false after `stop`.
  bool AwaitStores(const std::vector<const kube::Store*>& stores, std::stop_token stop);
  // Blocks until the pod store has synced. Then waits for the warmup store too, but at most 2 s,
  // because the held-pod controller can run without warmups. Returns false after `stop`.
  bool AwaitHeldPodStores(std::stop_token stop);
  // Makes this replica not ready. If the Lease was lost while the webhook is served, blocks until
  // kubelet has reported the replica as not ready, so that API servers stop calling the webhook.
  // Returns at once after `stop`, because Kubernetes removes the endpoint of a terminating pod.
  void AwaitEndpointRemoval(std::stop_token stop);
  void RunHeldPodController(std::stop_token stop);
  // Starts threads that discard the keys in the queues of the leader's controllers, because nothing
  // processes these keys on a standby. RunLeaderControllers() ends the threads and queues every
  // object again.
  void DiscardKeys();
  // Waits for the check of the CRDs first. Returns OK after `stop`.
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

// Returns a client for the API server in `config` that counts its requests in `metrics`. Sets
// `http` to the HTTP client that the returned client uses. All references must outlive the returned
// client.
absl::StatusOr<std::unique_ptr<kube::Client>> ConnectToCluster(const Config& config,
                                                               const Clock& clock, Random random,
                                                               const Metrics& metrics,
                                                               std::unique_ptr<http::Client>& http);

}  // namespace cachewarm::op
