// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/http/server.h"
#include "lib/kube/client/client.h"
#include "operator/admission/webhook/handler.h"
#include "operator/admission/webhook/registration.h"
#include "operator/metrics.h"

namespace cachewarm::webhook {

struct ServiceOptions {
  std::string ns;    // where the operator, the Secret and the Service are
  std::string root;  // of the agents
  std::string listen_address = "0.0.0.0";
  uint16_t listen_port = 8443;
  // How long it still answers when it is to stop: API servers go on asking until they have seen
  // that the endpoint is gone.
  Duration goodbye{3'000};
};

// Everything referenced must outlive it.
struct ServiceMeans {
  kube::Client& client;
  const Clock& clock;
  Log& log;
  const op::Metrics& metrics;
  WarmupsOf warmups;
  // Called on Run()'s thread when what Missing() says has changed.
  std::function<void()> on_change;
};

// Finds out, now and then, by what pods are injected in this cluster, and serves the webhook where
// it is installed. Every replica serves; the one that leads also keeps the certificates and tells
// the API server whom to trust, unless the policy does the work or cert-manager does that.
class Service {
 public:
  Service(ServiceOptions options, ServiceMeans means);

  // Looks at once, every 2 s until IsSettled() and every 30 s then. Returns `goodbye` after `stop`
  // where it serves, else at once.
  void Run(std::stop_token stop);
  // From any thread: whether this replica leads. Looks again soon.
  void SetLeading(bool leading);

  // Why no pod of the cluster can be injected, with the remedy; "" while one of both ways is
  // installed, or nothing is known yet. Thread-safe.
  std::string Missing() const;
  // It has found out what is installed, and serves what only it can: once true, it stays so.
  // Thread-safe.
  bool IsSettled() const { return settled_.load(); }
  // Of the webhook; 0 while it is not served. Thread-safe.
  uint16_t port() const { return port_.load(); }
  // How long Run() goes on answering after `stop`: zero while it is not served. Thread-safe.
  Duration StopDelay() const { return port_ == 0 ? Duration(0) : options_.goodbye; }

 private:
  absl::Status Look(std::stop_token stop);
  void Note(const Installed& installed);
  absl::Status Serve(const Installed& installed, std::stop_token stop);
  absl::StatusOr<KeyRing> Keep(const Registration& registration, const StoredRing& stored,
                               std::stop_token stop);
  absl::Status Show(const KeyRing& ring);
  void SayGoodbye();
  void StopServing();

  ServiceOptions options_;
  ServiceMeans means_;
  std::shared_ptr<http::ServerIdentity> identity_;
  KeyRing shown_;  // Run()'s thread only, as `server_`
  std::unique_ptr<http::Server> server_;
  std::atomic<uint16_t> port_{0};
  std::atomic<bool> settled_{false};
  mutable std::mutex mutex_;
  mutable std::condition_variable_any wake_;
  bool leading_ = false;
  bool again_ = false;
  std::string missing_;
  std::string by_;
};

}  // namespace cachewarm::webhook
