// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/kube/kubeconfig/exec_plugin.h"
#include "lib/kube/kubeconfig/plugin_process.h"

namespace cachewarm::kube {

// Runs a credential plugin when credentials are needed, and keeps them in memory until they expire,
// or for the lifetime of the object if they have no expiry. One plugin runs at a time. Thread-safe.
class PluginSession {
 public:
  using Credentials = std::shared_ptr<const PluginCredentials>;

  // `clock` must outlive the object.
  PluginSession(std::shared_ptr<const ExecPlugin> plugin, PluginContext context,
                const Clock& clock);

  // Returns the kept credentials; runs the plugin if there are none or they have expired. Errors:
  // those of RunPlugin(), also for malformed output.
  absl::StatusOr<Credentials> Get(std::stop_token stop);

  // Call when the server has answered 401 to `rejected`. Runs the plugin again, unless another
  // thread has, and returns true if Get() now returns other credentials. Credentials of such a run
  // that the server rejects, too, are final: then returns false without running the plugin.
  absl::StatusOr<bool> Renew(const Credentials& rejected, std::stop_token stop);

  // Call when the server has accepted `used`, so that Renew() may run the plugin for them.
  void Accept(const Credentials& used);

  const ExecPlugin& plugin() const { return *plugin_; }

 private:
  absl::Status Run(const std::stop_token& stop);

  const std::shared_ptr<const ExecPlugin> plugin_;
  const PluginContext context_;
  const Clock& clock_;
  std::mutex mutex_;  // also held while the plugin runs
  Credentials kept_;
  bool is_final_ = false;  // kept_ replaced rejected credentials and were not accepted yet
};

}  // namespace cachewarm::kube
