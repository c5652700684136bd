// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"

namespace cachewarm::kube {

// A credential plugin: a program that prints the credentials of a user. The field "exec" of a
// kubeconfig describes it.
// https://kubernetes.io/docs/reference/access-authn-authz/authentication ("credential plugins")
struct ExecPlugin {
  enum class Input {
    kNever,       // the plugin never reads the terminal
    kIfTerminal,  // the plugin reads the terminal if there is one
    kAlways,      // the plugin cannot run without a terminal
  };

  std::string user;         // name of the user in the kubeconfig, for messages
  std::string api_version;  // "client.authentication.k8s.io/v1" or ".../v1beta1"
  std::string command;      // path, or a name to look up in PATH
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  // added to the variables of this process
  std::string install_hint;                        // how to install the plugin, for users
  Input input = Input::kNever;
  std::string cluster;  // JSON object to pass in KUBERNETES_EXEC_INFO; empty: none
};

// Credentials that a plugin printed. A certificate always has a key.
struct PluginCredentials {
  std::string token;
  std::string certificate_pem;
  std::string key_pem;
  std::optional<WallTime> expires;

  friend bool operator==(const PluginCredentials&, const PluginCredentials&) = default;
};

// Returns the value of KUBERNETES_EXEC_INFO: an ExecCredential without a status.
std::string ExecInfo(const ExecPlugin& plugin, bool is_interactive);

// Parses the output of the plugin, an ExecCredential. INVALID_ARGUMENT, naming the field, if it is
// malformed, has another version than the plugin, or contains no credentials.
absl::StatusOr<PluginCredentials> ParseExecCredential(const ExecPlugin& plugin,
                                                      std::string_view output);

// Returns OK if the text may be sent as a bearer token: visible ASCII characters only.
absl::Status CheckToken(std::string_view token);

}  // namespace cachewarm::kube
