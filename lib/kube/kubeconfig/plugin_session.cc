// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/kubeconfig/plugin_session.h"

#include <utility>

#include "lib/base/status.h"

namespace cachewarm::kube {

PluginSession::PluginSession(std::shared_ptr<const ExecPlugin> plugin, PluginContext context,
                             const Clock& clock)
    : plugin_(std::move(plugin)), context_(std::move(context)), clock_(clock) {}

absl::Status PluginSession::Run(const std::stop_token& stop) {
  CW_ASSIGN_OR_RETURN(const std::string output, RunPlugin(*plugin_, context_, clock_, stop));
  absl::StatusOr<PluginCredentials> parsed = ParseExecCredential(*plugin_, output);
  if (!parsed.ok()) {
    return PluginError(*plugin_, Annotate(parsed.status(), "its output is not usable"));
  }
  kept_ = std::make_shared<const PluginCredentials>(*std::move(parsed));
  return absl::OkStatus();
}

absl::StatusOr<PluginSession::Credentials> PluginSession::Get(std::stop_token stop) {
  const std::lock_guard lock(mutex_);
  if (kept_ == nullptr || (kept_->expires.has_value() && clock_.Now() >= *kept_->expires)) {
    CW_RETURN_IF_ERROR(Run(stop));
    is_final_ = false;
  }
  return kept_;
}

absl::StatusOr<bool> PluginSession::Renew(const Credentials& rejected, std::stop_token stop) {
  const std::lock_guard lock(mutex_);
  if (kept_ == rejected) {
    if (is_final_) {
      return false;
    }
    CW_RETURN_IF_ERROR(Run(stop));
    is_final_ = true;
  }
  return !(*kept_ == *rejected);
}

void PluginSession::Accept(const Credentials& used) {
  const std::lock_guard lock(mutex_);
  if (kept_ == used) {
    is_final_ = false;
  }
}

}  // namespace cachewarm::kube
