// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "lib/http/client.h"
#include "lib/kube/client/client.h"

namespace cachewarm::cli {

// --kubeconfig, --context, --namespace, --all-namespaces: of every verb that asks a cluster.
std::span<const Option> ClusterOptionList();

// An API server and where in it to look.
struct Connection {
  std::unique_ptr<http::Client> http;  // outlives `client`
  std::unique_ptr<kube::Client> client;
  std::string ns;  // empty: all namespaces
};

// As kubectl finds it: --kubeconfig, $KUBECONFIG, ~/.kube/config; inside a pod without any of them,
// its service account. Through the proxies of the environment. INVALID_ARGUMENT where options or
// files contradict, FAILED_PRECONDITION where there is no cluster.
absl::StatusOr<Connection> Connect(const Arguments& arguments, const Console& console);

}  // namespace cachewarm::cli
