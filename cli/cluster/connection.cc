// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/connection.h"

#include <array>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/base/random.h"
#include "lib/base/status.h"
#include "lib/kube/client/config.h"
#include "lib/kube/client/http_client.h"
#include "lib/kube/kubeconfig/kubeconfig.h"
#include "lib/kube/kubeconfig/plugin_client.h"
#include "lib/kube/kubeconfig/selection.h"

namespace cachewarm::cli {
namespace {

constexpr std::array<Option, 6> kClusterOptions = {
    Option{.name = "kubeconfig",
           .value = "FILE",
           .help = "kubeconfig file (default: the files of $KUBECONFIG, ~/.kube/config)"},
    Option{.name = "context",
           .value = "NAME",
           .help = "kubeconfig context (default: the current context)"},
    Option{.name = "cluster",
           .value = "NAME",
           .help = "kubeconfig cluster (default: that of the context)"},
    Option{
        .name = "user", .value = "NAME", .help = "kubeconfig user (default: that of the context)"},
    Option{.name = "as", .value = "USER", .help = "user to impersonate"},
    Option{.name = "as-group",
           .value = "GROUP",
           .help = "group to impersonate; needs a user to impersonate",
           .repeats = true}};

constexpr std::array<Option, 2> kPodOptions = {
    Option{.name = "namespace",
           .value = "NAME",
           .help = "namespace (default: the namespace of the context)",
           .letter = 'n'},
    Option{.name = "all-namespaces", .value = "", .help = "all namespaces", .letter = 'A'}};

// Returns the first option that selects a part of a kubeconfig; empty if none is given.
std::string GivenSelection(const Arguments& arguments) {
  for (const char* name : {"context", "cluster", "user", "as", "as-group"}) {
    if (!arguments.Values(name).empty()) {
      return fmt::format("--{}", name);
    }
  }
  return "";
}

absl::StatusOr<kube::ClusterConfig> ConfigOf(const Arguments& arguments, const Console& console) {
  CW_ASSIGN_OR_RETURN(const kube::Kubeconfig kubeconfig,
                      kube::LoadKubeconfig({.file = arguments.Value("kubeconfig"),
                                            .variable = console.Environment("KUBECONFIG"),
                                            .home = console.Environment("HOME")}));
  if (!kubeconfig.files.empty()) {
    return kube::SelectCluster(kubeconfig, {.context = arguments.Value("context"),
                                            .cluster = arguments.Value("cluster"),
                                            .user = arguments.Value("user"),
                                            .as = arguments.Value("as"),
                                            .as_groups = arguments.Values("as-group")});
  }
  const std::string missing =
      kubeconfig.missing.empty()
          ? "no kubeconfig found"
          : fmt::format("no kubeconfig found ({})", fmt::join(kubeconfig.missing, ", "));
  if (const std::string given = GivenSelection(arguments); !given.empty()) {
    return UsageError(fmt::format("{}: {}; set one with --kubeconfig", given, missing));
  }
  auto config =
      kube::InClusterConfig({.service_host = console.Environment("KUBERNETES_SERVICE_HOST"),
                             .service_port = console.Environment("KUBERNETES_SERVICE_PORT")});
  return config.ok() ? config : Annotate(config.status(), missing);
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
  return kClusterOptions;
}

std::span<const Option> PodOptionList() {
  return kPodOptions;
}

std::span<const Option> NamespaceOptionList() {
  return std::span<const Option>(kPodOptions).first(1);
}

absl::StatusOr<Connection> Connect(const Arguments& arguments, Console& console) {
  CW_ASSIGN_OR_RETURN(kube::ClusterConfig config, ConfigOf(arguments, console));
  Connection connection;
  CW_ASSIGN_OR_RETURN(connection.ns, NamespaceOf(arguments, config));
  http::ClientOptions options{.user_agent = "cachewarm-cli"};
  CW_RETURN_IF_ERROR(http::ReadProxies(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = console.environment.find(name);
        return found == console.environment.end() ? std::nullopt : std::optional(found->second);
      },
      options.proxy));
  kube::PluginContext plugins{
      .environment = console.environment,
      .terminal = console.terminal,
      .on_stderr = [&err = console.err](std::string_view bytes) { err << bytes << std::flush; }};
  CW_ASSIGN_OR_RETURN(
      connection.http,
      kube::MakePluginHttpClient(config, std::move(options), std::move(plugins), console.clock));
  connection.client = kube::MakeHttpClient(*connection.http, console.clock, SystemRandom(),
                                           {.config = std::move(config)});
  return connection;
}

}  // namespace cachewarm::cli
