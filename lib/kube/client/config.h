// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/http/client.h"

namespace cachewarm::kube {

// How to reach and convince one API server.
struct ClusterConfig {
  std::string server;      // "https://10.0.0.1:6443", without a path at the end
  std::string token;       // a bearer token, or
  std::string token_file;  // a file that holds one and is rotated
  std::string default_namespace = "default";
  http::TlsOptions tls;
};

// What a pod finds: KUBERNETES_SERVICE_HOST and _PORT from `environment`, token, CA and namespace
// from `account_dir`. FAILED_PRECONDITION when this is no pod, saying what is missing.
struct PodEnvironment {
  std::string service_host;
  std::string service_port;
  std::string account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
};
absl::StatusOr<ClusterConfig> InClusterConfig(const PodEnvironment& environment);

// Reads a kubeconfig file. `context` empty: its current-context. Relative paths count from the
// file's folder. Exec plugins, auth providers, basic authentication, proxies, insecure-skip-tls-
// verify and tls-server-name are refused with INVALID_ARGUMENT that says what to use instead.
absl::StatusOr<ClusterConfig> KubeconfigFile(const std::string& path, const std::string& context);

// The file when `kubeconfig` is not empty, else InClusterConfig().
absl::StatusOr<ClusterConfig> FindConfig(const std::string& kubeconfig,
                                         const PodEnvironment& environment);

}  // namespace cachewarm::kube
