// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/http/client.h"

namespace cachewarm::kube {

// Address and credentials of one API server.
struct ClusterConfig {
  std::string server;      // "https://10.0.0.1:6443", without trailing path
  std::string token;       // bearer token; used only if token_file is empty
  std::string token_file;  // file with a bearer token; read again regularly
  std::string default_namespace = "default";
  http::TlsOptions tls;
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

// Reads a kubeconfig file. An empty `context` selects the current-context of the file. Relative
// paths in the file start at the directory of the file. INVALID_ARGUMENT for a malformed file, and
// for exec plugins, auth providers, basic authentication, impersonation, proxies,
// insecure-skip-tls-verify and tls-server-name; the message names the alternative.
absl::StatusOr<ClusterConfig> KubeconfigFile(const std::string& path, const std::string& context);

// Returns KubeconfigFile() of the path `kubeconfig`; InClusterConfig() if the path is empty.
absl::StatusOr<ClusterConfig> FindConfig(const std::string& kubeconfig,
                                         const PodEnvironment& environment);

}  // namespace cachewarm::kube
