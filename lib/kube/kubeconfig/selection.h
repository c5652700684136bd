// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/kube/client/config.h"
#include "lib/kube/kubeconfig/kubeconfig.h"

namespace cachewarm::kube {

// Values of the command line that replace those of a kubeconfig; empty: not given.
struct KubeconfigSelection {
  std::string context;
  std::string cluster;
  std::string user;
  std::string as;
  std::vector<std::string> as_groups;
};

// Returns address and credentials of the selected context: --context, else the current-context.
// INVALID_ARGUMENT, naming the file, the field and the remedy, for an unknown name and for values
// that cachewarm does not support: auth providers, basic authentication, plugins of version
// v1alpha1, and proxies that http::ParseProxy() rejects. Errors of fs::ReadNamedFile if the token
// file of a user without token cannot be read.
absl::StatusOr<ClusterConfig> SelectCluster(const Kubeconfig& kubeconfig,
                                            const KubeconfigSelection& selection);

// Returns the configuration of a daemon: the current-context of the file `kubeconfig`;
// InClusterConfig() if the path is empty. INVALID_ARGUMENT also for a user with a credential
// plugin, which daemons do not run.
absl::StatusOr<ClusterConfig> FindConfig(const std::string& kubeconfig,
                                         const PodEnvironment& environment);

}  // namespace cachewarm::kube
