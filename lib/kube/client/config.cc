// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/client/config.h"

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/kube/client/small_file.h"

namespace cachewarm::kube {

absl::StatusOr<ClusterConfig> InClusterConfig(const PodEnvironment& environment) {
  if (environment.service_host.empty() || environment.service_port.empty()) {
    return absl::FailedPreconditionError(
        "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, so this process does not "
        "run in a pod; set --kubeconfig");
  }
  const bool is_ipv6 = environment.service_host.find(':') != std::string::npos;
  ClusterConfig config;
  config.server = fmt::format("https://{}{}{}:{}", is_ipv6 ? "[" : "", environment.service_host,
                              is_ipv6 ? "]" : "", environment.service_port);
  config.token_file = environment.account_dir + "/token";
  config.tls.ca_file = environment.account_dir + "/ca.crt";
  for (const std::string& path : {config.token_file, config.tls.ca_file}) {
    if (const absl::Status status = ReadSmallFile(path).status(); !status.ok()) {
      return absl::FailedPreconditionError(
          fmt::format("{}; mount a service account token into the pod", Message(status)));
    }
  }
  if (const auto ns = ReadSmallFile(environment.account_dir + "/namespace"); ns.ok()) {
    config.default_namespace = *ns;
  }
  return config;
}

}  // namespace cachewarm::kube
