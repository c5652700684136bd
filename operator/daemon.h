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

// What the daemon is given; tests give a fake clock and API server. All of it must outlive it.
struct DaemonParts {
  kube::Client& client;
  const Clock& clock;
  Random random;
  Log& log;
  metrics::Registry& registry;
  const Metrics& metrics;
};

// The operator at work: composed here and nowhere else. Started in the order server, reflectors,
// the watch over held pods, election, the other controllers; stopped in reverse. Held pods need the
// stores of pods and warmups, and no other; what plans needs all. Single use.
class Daemon {
 public:
  Daemon(const Config& config, const DaemonParts& parts);
  ~Daemon();

  // Blocks until `stop` (OK) or until it cannot go on: the port is taken, the Lease was lost. The
  // process is then to end, so that whoever leads next starts from what the API server has.
  absl::Status Run(std::stop_token stop);

  // Of /metrics, /healthz and /readyz; 0 before Run() listens.
  uint16_t port() const { return port_.load(); }
  // For people; "" when it is ready. Until all stores are full and, where API servers ask the
  // webhook, it is served; and again once the Lease was lost.
  std::string WhyNotReady() const;
  bool IsReady() const { return WhyNotReady().empty(); }
  // How long Run() may take from `stop`: process::kStopWithin, and the time for which a webhook
  // that is served goes on answering.
  Duration StopLimit() const;

 private:
  struct Room;

  absl::StatusOr<std::unique_ptr<http::Server>> Serve();
  // Blocks until they have synced, with a log line now and then; false after `stop`.
  bool AwaitStores(const std::vector<const kube::Store*>& stores, std::stop_token stop);
  // Blocks until held pods can be judged; false after `stop`.
  bool AwaitPods(std::stop_token stop);
  // Until kubelet has seen that this replica is not ready any more, where API servers ask it about
  // pods.
  void LoseEndpoint(std::stop_token stop);
  void WatchHeldPods(std::stop_token stop);
  // Until RunPlans(): keys of what only a leader looks at would gather in a replica that does not
  // lead. Whoever begins to lead looks at everything.
  void ForgetKeys();
  absl::Status StandForElection(std::stop_token stop);
  void Lead(std::stop_token stop);
  // Everything that only the leader does, once all stores have synced.
  void RunPlans(std::stop_token stop);
  // Until `stop`; counted under the name of its options.
  void RunController(kube::ControllerOptions options, kube::WorkQueue& queue,
                     kube::Reconcile reconcile, std::stop_token stop);

  Config config_;
  DaemonParts parts_;
  std::unique_ptr<Room> room_;
  std::atomic<uint16_t> port_{0};
  std::atomic<bool> leaving_{false};
};

// The client of the real API server for `config`, reporting to `metrics`. The http client that it
// works with is owned by `http`. Everything must outlive it.
absl::StatusOr<std::unique_ptr<kube::Client>> ConnectToCluster(const Config& config,
                                                               const Clock& clock, Random random,
                                                               const Metrics& metrics,
                                                               std::unique_ptr<http::Client>& http);

}  // namespace cachewarm::op
