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
#include "operator/metrics.h"
#include "operator/webhook/handler.h"
#include "operator/webhook/registration.h"

namespace cachewarm::webhook {

struct ServiceOptions {
  std::string ns;    // namespace of the operator, the Secret and the Service
  std::string root;  // directory of the agents on every node
  std::string listen_address = "0.0.0.0";
  uint16_t listen_port = 8443;
  // Time to keep serving after `stop`: API servers call the webhook until they have seen the
  // removal of its endpoint.
  Duration drain_delay{3'000};
};

// All references must outlive the service.
struct ServiceDependencies {
  kube::Client& client;
  const Clock& clock;
  Log& log;
  const op::Metrics& metrics;
  WarmupsOf warmups;
  // Called on Run()'s thread when the result of Missing() has changed.
  std::function<void()> on_change;
};

// Checks periodically whether the policy or the webhook injects pods in this cluster, and serves
// the webhook if it is installed. Every replica serves the webhook. The leader also maintains the
// certificates and the caBundle, unless the policy is installed or cert-manager maintains them.
class Service {
 public:
  Service(ServiceOptions options, ServiceDependencies deps);

  // Checks at once, then every 2 s until IsSettled() and every 30 s afterwards. After `stop`,
  // returns at once if the webhook is not served, else after `drain_delay`.
  void Run(std::stop_token stop);
  // Sets whether this replica leads and triggers a check. Thread-safe.
  void SetLeading(bool leading);

  // Returns why no pod can be injected, with the remedy; "" if the policy or the webhook is
  // installed, and before the first check. Thread-safe.
  std::string Missing() const;
  // Returns true once a check has succeeded and the webhook, if needed, is served; stays true
  // afterwards. Thread-safe.
  bool IsSettled() const { return settled_.load(); }
  // Port of the webhook; 0 while not serving. Thread-safe.
  uint16_t port() const { return port_.load(); }
  // Returns the time for which Run() keeps serving after `stop`; zero while the webhook is not
  // served. Thread-safe.
  Duration StopDelay() const { return port_ == 0 ? Duration(0) : options_.drain_delay; }

 private:
  absl::Status Check(std::stop_token stop);
  void RecordInstalled(const Installed& installed);
  absl::Status Serve(const Installed& installed, std::stop_token stop);
  absl::StatusOr<CertificateBundle> MaintainCertificates(const Registration& registration,
                                                         const StoredCertificateBundle& stored,
                                                         std::stop_token stop);
  absl::Status StartServing(const CertificateBundle& bundle);
  void Drain();
  void StopServing();

  ServiceOptions options_;
  ServiceDependencies deps_;
  std::shared_ptr<http::ServerIdentity> identity_;
  CertificateBundle served_;  // this and `server_`: used only on Run()'s thread
  std::unique_ptr<http::Server> server_;
  std::atomic<uint16_t> port_{0};
  std::atomic<bool> settled_{false};
  mutable std::mutex mutex_;
  mutable std::condition_variable_any wake_;
  bool leading_ = false;
  bool recheck_ = false;
  std::string missing_;
  std::string mode_;
};

}  // namespace cachewarm::webhook
