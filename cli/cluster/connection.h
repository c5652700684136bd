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

// Options that select a cluster and a user from a kubeconfig.
std::span<const Option> ClusterOptionList();
// --namespace and --all-namespaces, which Connect() turns into Connection::ns.
std::span<const Option> PodOptionList();
// --namespace only.
std::span<const Option> NamespaceOptionList();

// Client of an API server, and the selected namespace.
struct Connection {
  std::unique_ptr<http::Client> http;  // used by `client`, so destroyed after it
  std::unique_ptr<kube::Client> client;
  std::string ns;  // empty: all namespaces
};

// Connects to the cluster that kubectl would use: --kubeconfig, the files of $KUBECONFIG,
// ~/.kube/config; without these, the service account of the pod. Uses the proxy of the kubeconfig,
// else the proxies that the environment variables name (HTTPS_PROXY). Runs the credential plugin of
// the user on the first request, and prints the plugin's error output to `console`, which must
// outlive the connection. Errors: INVALID_ARGUMENT if options or files conflict,
// FAILED_PRECONDITION if no cluster is configured.
absl::StatusOr<Connection> Connect(const Arguments& arguments, Console& console);

}  // namespace cachewarm::cli
