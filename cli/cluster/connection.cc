// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/connection.h"

#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "lib/base/random.h"
#include "lib/base/status.h"
#include "lib/kube/client/config.h"
#include "lib/kube/client/http_client.h"

namespace cachewarm::cli {
namespace {

constexpr std::array<Option, 4> kOptions = {
    Option{.name = "kubeconfig",
           .value = "FILE",
           .help = "kubeconfig file (default: $KUBECONFIG, ~/.kube/config)"},
    Option{.name = "context",
           .value = "NAME",
           .help = "kubeconfig context (default: the current context)"},
    Option{.name = "namespace",
           .value = "NAME",
           .help = "namespace of the pods (default: the namespace of the context)",
           .letter = 'n'},
    Option{.name = "all-namespaces", .value = "", .help = "pods of all namespaces", .letter = 'A'}};

// Returns the path of the kubeconfig; empty if there is none, as in a pod.
absl::StatusOr<std::string> KubeconfigPath(const Arguments& arguments, const Console& console) {
  if (std::string given = arguments.Value("kubeconfig"); !given.empty()) {
    return given;
  }
  if (std::string named = console.Environment("KUBECONFIG"); !named.empty()) {
    if (named.find(':') != std::string::npos) {
      return UsageError(
          "KUBECONFIG: several files are not supported; choose one with --kubeconfig");
    }
    return named;
  }
  const std::string home = console.Environment("HOME");
  std::string usual = home.empty() ? "" : home + "/.kube/config";
  std::error_code error;
  return !usual.empty() && std::filesystem::exists(usual, error) ? usual : std::string();
}

absl::StatusOr<kube::ClusterConfig> ConfigOf(const Arguments& arguments, const Console& console) {
  CW_ASSIGN_OR_RETURN(const std::string path, KubeconfigPath(arguments, console));
  const std::string context = arguments.Value("context");
  if (!path.empty()) {
    return kube::KubeconfigFile(path, context);
  }
  if (!context.empty()) {
    return UsageError("--context: no kubeconfig found; set one with --kubeconfig");
  }
  return kube::InClusterConfig({.service_host = console.Environment("KUBERNETES_SERVICE_HOST"),
                                .service_port = console.Environment("KUBERNETES_SERVICE_PORT")});
}

absl::StatusOr<std::string> NamespaceOf(const Arguments& arguments,
                                        const kube::ClusterConfig& config) {
  const std::string given = arguments.Value("namespace");
  if (!arguments.Has("all-namespaces")) {
    return given.empty() ? config.default_namespace : given;
  }
  if (!given.empty()) {
    return UsageError("--namespace, --all-namespaces: give only one of them");
  }
  return std::string();
}

}  // namespace

std::span<const Option> ClusterOptionList() {
  return kOptions;
}

absl::StatusOr<Connection> Connect(const Arguments& arguments, const Console& console) {
  CW_ASSIGN_OR_RETURN(kube::ClusterConfig config, ConfigOf(arguments, console));
  Connection connection;
  CW_ASSIGN_OR_RETURN(connection.ns, NamespaceOf(arguments, config));
  http::ClientOptions options{.tls = config.tls, .user_agent = "cachewarm-cli"};
  CW_RETURN_IF_ERROR(http::ReadProxies(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = console.environment.find(name);
        return found == console.environment.end() ? std::nullopt : std::optional(found->second);
      },
      options.proxy));
  CW_ASSIGN_OR_RETURN(connection.http, http::MakeClient(options));
  connection.client = kube::MakeHttpClient(*connection.http, console.clock, SystemRandom(),
                                           {.config = std::move(config)});
  return connection;
}

}  // namespace cachewarm::cli
