// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/kube/kubeconfig/exec_plugin.h"

namespace cachewarm::kube {

// The process that a plugin runs for.
struct PluginContext {
  std::map<std::string, std::string> environment;  // variables of this process; PATH finds plugins
  int terminal = -1;  // descriptor of the terminal that plugins may read; -1: there is none
  // Receives the plugin's error output as it arrives, on the thread that runs the plugin. May be
  // empty.
  std::function<void(std::string_view)> on_stderr;
  Duration deadline{60'000};               // of a plugin that cannot read the terminal
  Duration deadline_at_terminal{300'000};  // of a plugin that may wait for the user
};

// Runs the plugin and returns its output, at most 1 MiB. A plugin without terminal has its own
// process group, which is killed with the plugin. Errors: those of PluginError() if the plugin is
// not installed, failed, printed too much, needs a terminal or did not end before the deadline;
// CANCELLED within 1 s of `stop`.
absl::StatusOr<std::string> RunPlugin(const ExecPlugin& plugin, const PluginContext& context,
                                      const Clock& clock, std::stop_token stop);

// Returns FAILED_PRECONDITION, so that no request with the credentials is retried: the message of
// `status`, with the plugin and its user in front and the install hint at the end. Returns
// CANCELLED unchanged.
absl::Status PluginError(const ExecPlugin& plugin, const absl::Status& status);

}  // namespace cachewarm::kube
