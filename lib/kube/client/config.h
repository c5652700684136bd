// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/http/client.h"
#include "lib/http/text/headers.h"

namespace cachewarm::kube {

struct ExecPlugin;

// Address and credentials of one API server.
struct ClusterConfig {
  std::string server;      // "https://10.0.0.1:6443", without trailing path
  std::string token;       // bearer token; used only if token_file is empty
  std::string token_file;  // file with a bearer token; read again regularly
  std::string default_namespace = "default";
  http::TlsOptions tls;
  std::string proxy;      // URL of the proxy for all requests; empty: none is configured
  http::Headers headers;  // of every request, for example those that impersonate a user
  // Prints credentials, for MakePluginHttpClient(); null: the user has no credential plugin.
  std::shared_ptr<const ExecPlugin> plugin;
};

// Arguments of InClusterConfig(), which returns the configuration inside a pod: the address from
// KUBERNETES_SERVICE_HOST and _PORT; token, CA and namespace from `account_dir`. Outside of a pod:
// FAILED_PRECONDITION, which names the missing variable or file.
struct PodEnvironment {
  std::string service_host;
  std::string service_port;
  std::string account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
};
absl::StatusOr<ClusterConfig> InClusterConfig(const PodEnvironment& environment);

}  // namespace cachewarm::kube
