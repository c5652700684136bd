// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/kubeconfig/selection.h"

#include <array>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/codec/base64.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/fs/file.h"
#include "lib/http/text/ascii.h"
#include "lib/http/text/percent.h"
#include "lib/http/text/url.h"
#include "lib/kube/client/small_file.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

constexpr std::string_view kPluginGroup = "client.authentication.k8s.io/";
constexpr int64_t kCaBytesMax = 4 << 20;

absl::Status Refuse(std::string_view field, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", field, problem));
}

// Returns the entry `name`. `origin` names the field or flag that contains the name.
template <typename Entry>
absl::StatusOr<Entry> Named(const std::map<std::string, Entry>& entries, std::string_view section,
                            std::string_view origin, const std::string& name) {
  const auto found = entries.find(name);
  if (found != entries.end()) {
    return found->second;
  }
  return Refuse(origin, fmt::format("no entry of {} is named \"{}\"", section, name));
}

// Returns a remedy for an auth provider, which Kubernetes removed in 1.26, except for oidc.
std::string_view ProviderRemedy(std::string_view name) {
  constexpr std::array<std::array<std::string_view, 2>, 3> kRemedies = {{
      {"gcp",
       "install gke-gcloud-auth-plugin and run \"gcloud container clusters get-credentials\""},
      {"azure", "install kubelogin and run \"kubelogin convert-kubeconfig\""},
      {"oidc", "install the plugin kubectl-oidc_login and name it in the field exec"},
  }};
  for (const auto& [provider, remedy] : kRemedies) {
    if (provider == name) {
      return remedy;
    }
  }
  return "use a credential plugin (field exec) or a token";
}

absl::Status CheckUser(const KubeconfigUser& user) {
  if (!user.auth_provider.empty()) {
    return Refuse("user.auth-provider", fmt::format("the auth provider \"{}\" is not supported; {}",
                                                    user.auth_provider.substr(0, 100),
                                                    ProviderRemedy(user.auth_provider)));
  }
  if (user.has_password) {
    return Refuse("user.username, user.password",
                  "Kubernetes has removed basic authentication; use token");
  }
  return Annotate(CheckToken(user.token), "user.token");
}

absl::StatusOr<ExecPlugin::Input> InputOf(const ExecPlugin& plugin, const std::string& mode) {
  if (mode == "Never") {
    return ExecPlugin::Input::kNever;
  }
  // Version v1 requires the field; the default of v1beta1 is IfAvailable.
  if (mode == "IfAvailable" || (mode.empty() && plugin.api_version.ends_with("/v1beta1"))) {
    return ExecPlugin::Input::kIfTerminal;
  }
  if (mode == "Always") {
    return ExecPlugin::Input::kAlways;
  }
  return Refuse("user.exec.interactiveMode", "expected Never, IfAvailable or Always");
}

// Returns the cluster as KUBERNETES_EXEC_INFO describes it to a plugin.
absl::StatusOr<std::string> ClusterForPlugin(const KubeconfigCluster& cluster) {
  Json spec = {{"server", cluster.server}, {"config", nullptr}};
  if (!cluster.plugin_config.empty()) {
    CW_ASSIGN_OR_RETURN(spec["config"], codec::ParseJson(cluster.plugin_config));
  }
  std::string authorities = cluster.ca_pem;
  if (!cluster.ca_file.empty()) {
    CW_ASSIGN_OR_RETURN(authorities, fs::ReadNamedFile(cluster.ca_file, kCaBytesMax));
  }
  if (!authorities.empty()) {
    spec["certificate-authority-data"] = codec::EncodeBase64(authorities);
  }
  for (const auto& [name, value] : {std::pair("tls-server-name", cluster.tls_server_name),
                                    std::pair("proxy-url", cluster.proxy_url)}) {
    if (!value.empty()) {
      spec[name] = value;
    }
  }
  for (const auto& [name, value] :
       {std::pair("insecure-skip-tls-verify", cluster.skip_verification),
        std::pair("disable-compression", cluster.disable_compression)}) {
    if (value) {
      spec[name] = true;
    }
  }
  return codec::DumpJson(spec);
}

absl::StatusOr<std::shared_ptr<const ExecPlugin>> PluginOf(const KubeconfigUser& user,
                                                           const std::string& name,
                                                           const KubeconfigCluster& cluster) {
  if (user.exec == nullptr) {
    return nullptr;
  }
  auto plugin = std::make_shared<ExecPlugin>(*user.exec);
  plugin->user = name;
  if (plugin->command.empty()) {
    return Refuse("user.exec.command", "is required");
  }
  const bool has_group = plugin->api_version.starts_with(kPluginGroup);
  const std::string version = has_group ? plugin->api_version.substr(kPluginGroup.size()) : "";
  if (version != "v1" && version != "v1beta1") {
    return Refuse("user.exec.apiVersion",
                  fmt::format("expected {0}v1 or {0}v1beta1, not \"{1}\"; update the plugin and "
                              "create the kubeconfig again",
                              kPluginGroup, plugin->api_version.substr(0, 100)));
  }
  CW_ASSIGN_OR_RETURN(plugin->input, InputOf(*plugin, user.exec_input));
  if (user.exec_wants_cluster) {
    CW_ASSIGN_OR_RETURN(plugin->cluster, ClusterForPlugin(cluster));
  }
  return plugin;
}

// Returns the headers that impersonate a user.
// https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
absl::StatusOr<http::Headers> HeadersOf(const Impersonation& as) {
  http::Headers headers;
  if (as.user.empty()) {
    if (!as.uid.empty() || !as.groups.empty() || !as.extra.empty()) {
      return Refuse("user.as", "is required with as-uid, as-groups, as-user-extra and --as-group");
    }
    return headers;
  }
  headers.Add("Impersonate-User", as.user);
  if (!as.uid.empty()) {
    headers.Add("Impersonate-Uid", as.uid);
  }
  for (const std::string& group : as.groups) {
    headers.Add("Impersonate-Group", group);
  }
  for (const auto& [name, values] : as.extra) {
    for (const std::string& value : values) {
      headers.Add("Impersonate-Extra-" + http::PercentEncode(http::Lower(name)), value);
    }
  }
  for (const auto& [name, value] : headers) {
    if (HasAsciiControl(value)) {
      return Refuse(name, "the value contains a control character");
    }
  }
  return headers;
}

absl::Status UseCluster(const KubeconfigCluster& cluster, ClusterConfig& config) {
  config.server = cluster.server;
  if (const auto url = http::Url::Parse(config.server); !url.ok()) {
    return Annotate(url.status(), "cluster.server");
  }
  while (config.server.ends_with('/')) {
    config.server.pop_back();
  }
  if (!cluster.proxy_url.empty()) {
    CW_RETURN_IF_ERROR(Annotate(http::ParseProxy(cluster.proxy_url).status(), "cluster.proxy-url"));
  }
  if (cluster.skip_verification && (!cluster.ca_file.empty() || !cluster.ca_pem.empty())) {
    return Refuse("cluster.insecure-skip-tls-verify",
                  "excludes certificate-authority; remove one of the two");
  }
  config.proxy = cluster.proxy_url;
  config.tls.ca_file = cluster.ca_file;
  config.tls.ca_pem = cluster.ca_pem;
  config.tls.server_name = cluster.tls_server_name;
  config.tls.skip_verification = cluster.skip_verification;
  return absl::OkStatus();
}

absl::Status UseUser(const KubeconfigUser& user, ClusterConfig& config) {
  CW_RETURN_IF_ERROR(CheckUser(user));
  if (user.token.empty() && !user.token_file.empty()) {
    CW_RETURN_IF_ERROR(Annotate(ReadSmallFile(user.token_file).status(), "user.tokenFile"));
  }
  config.token_file = user.token_file;
  config.token = user.token_file.empty() ? user.token : "";
  config.tls.certificate_file = user.certificate_file;
  config.tls.certificate_pem = user.certificate_pem;
  config.tls.key_file = user.key_file;
  config.tls.key_pem = user.key_pem;
  return absl::OkStatus();
}

// Annotates an error with the file that contains the entry.
absl::Status InFile(const absl::Status& status, const std::string& file) {
  return file.empty() ? status : Annotate(status, file);
}

std::string Joined(const std::vector<std::string>& files) {
  return fmt::format("{}", fmt::join(files, ", "));
}

// Returns the selected context. Without one, if --cluster and --user are set: an empty context.
absl::StatusOr<KubeconfigContext> ContextOf(const Kubeconfig& kubeconfig,
                                            const KubeconfigSelection& selection) {
  const bool is_given = !selection.context.empty();
  const std::string& name = is_given ? selection.context : kubeconfig.current_context;
  if (name.empty()) {
    if (!selection.cluster.empty() && !selection.user.empty()) {
      return KubeconfigContext();
    }
    return InFile(Refuse("current-context",
                         "is not set; select a context with --context or \"kubectl config "
                         "use-context\""),
                  Joined(kubeconfig.files));
  }
  auto context =
      Named(kubeconfig.contexts, "contexts", is_given ? "--context" : "current-context", name);
  return context.ok() ? context : InFile(context.status(), Joined(kubeconfig.files));
}

}  // namespace

absl::StatusOr<ClusterConfig> SelectCluster(const Kubeconfig& kubeconfig,
                                            const KubeconfigSelection& selection) {
  CW_ASSIGN_OR_RETURN(const KubeconfigContext context, ContextOf(kubeconfig, selection));
  const auto pick = [&](const auto& entries, std::string_view section, const std::string& given,
                        std::string_view flag, const std::string& usual) {
    auto entry =
        Named(entries, section, given.empty() ? "context" : flag, given.empty() ? usual : given);
    return entry.ok()
               ? entry
               : InFile(entry.status(), given.empty() ? context.file : Joined(kubeconfig.files));
  };
  CW_ASSIGN_OR_RETURN(
      const KubeconfigCluster cluster,
      pick(kubeconfig.clusters, "clusters", selection.cluster, "--cluster", context.cluster));
  KubeconfigUser user;  // a context without a user has no credentials
  const std::string& user_name = selection.user.empty() ? context.user : selection.user;
  if (!user_name.empty()) {
    CW_ASSIGN_OR_RETURN(user,
                        pick(kubeconfig.users, "users", selection.user, "--user", context.user));
  }
  if (!selection.as.empty()) {
    user.impersonation = {.user = selection.as, .uid = {}, .groups = {}, .extra = {}};
  }
  if (!selection.as_groups.empty()) {
    user.impersonation.groups = selection.as_groups;
  }
  ClusterConfig config;
  CW_RETURN_IF_ERROR(InFile(UseCluster(cluster, config), cluster.file));
  CW_RETURN_IF_ERROR(InFile(UseUser(user, config), user.file));
  absl::StatusOr<http::Headers> headers = HeadersOf(user.impersonation);
  if (!headers.ok()) {
    return InFile(headers.status(), user.file);
  }
  config.headers = *std::move(headers);
  auto plugin = PluginOf(user, user_name, cluster);
  if (!plugin.ok()) {
    return InFile(plugin.status(), user.file);
  }
  config.plugin = *std::move(plugin);
  if (!context.ns.empty()) {
    config.default_namespace = context.ns;
  }
  return config;
}

absl::StatusOr<ClusterConfig> FindConfig(const std::string& kubeconfig,
                                         const PodEnvironment& environment) {
  if (kubeconfig.empty()) {
    return InClusterConfig(environment);
  }
  CW_ASSIGN_OR_RETURN(const Kubeconfig loaded,
                      LoadKubeconfig({.file = kubeconfig, .variable = {}, .home = {}}));
  CW_ASSIGN_OR_RETURN(ClusterConfig config, SelectCluster(loaded, {}));
  if (config.plugin != nullptr) {
    return InFile(Refuse("user.exec",
                         "only the CLI runs credential plugins; create a token for this program "
                         "and set the field token or tokenFile"),
                  kubeconfig);
  }
  return config;
}

}  // namespace cachewarm::kube
