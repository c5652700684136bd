// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/http/client.h"

namespace cachewarm::kube {

// Address and credentials of one API server.
struct ClusterConfig {
  std::string server;      // "https://10.0.0.1:6443", without trailing path
  std::string token;       // a bearer token, if token_file is empty
  std::string token_file;  // path of a file with a token that is rotated
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

// Reads a kubeconfig file. An empty `context` selects its current-context. Paths in the file are
// relative to its directory. INVALID_ARGUMENT for exec plugins, auth providers, basic
// authentication, proxies, insecure-skip-tls-verify and tls-server-name, with the alternative to
// use.
absl::StatusOr<ClusterConfig> KubeconfigFile(const std::string& path, const std::string& context);

// Reads the file `kubeconfig` if it is not empty, otherwise the environment of the pod.
absl::StatusOr<ClusterConfig> FindConfig(const std::string& kubeconfig,
                                         const PodEnvironment& environment);

}  // namespace cachewarm::kube
