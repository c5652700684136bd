// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/kubeconfig/kubeconfig.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/base64.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"
#include "lib/codec/yaml.h"
#include "lib/kube/client/small_file.h"

namespace cachewarm::kube {
namespace {

using codec::Json;
using codec::Reader;

constexpr size_t kFilesMax = 64;
constexpr size_t kKubeconfigBytesMax = 4U << 20U;
constexpr size_t kEntriesMax = 10'000;
constexpr size_t kDataBytesMax = 1U << 20U;
constexpr size_t kSecretBytesMax = 256U << 10U;
constexpr char kPluginExtension[] = "client.authentication.k8s.io/exec";

// Makes a path of the kubeconfig `file` absolute, as kubectl does.
void Resolve(const std::string& file, std::string& path) {
  if (!path.empty()) {
    std::error_code unused;  // of a working directory that was removed: keeps the path relative
    const std::filesystem::path folder = std::filesystem::absolute(file, unused).parent_path();
    path = (folder / path).lexically_normal().string();
  }
}

// Reads the path `name`, and the field `name`-data (base64) into `pem`. As in kubectl, the data
// wins.
void ReadPem(Reader& reader, std::string_view name, std::string& file, std::string& pem) {
  const std::string data_name = fmt::format("{}-data", name);
  std::string encoded;
  reader.Read(name, file).Read(data_name, encoded, kDataBytesMax);
  absl::StatusOr<std::string> decoded = codec::DecodeBase64(encoded);
  if (!decoded.ok()) {
    reader.Fail(data_name, Message(decoded.status()));
    return;
  }
  pem = *std::move(decoded);
  if (!pem.empty()) {
    file.clear();
  }
}

void ReadContext(Reader& reader, KubeconfigContext& to) {
  reader.Read("cluster", to.cluster).Read("user", to.user).Read("namespace", to.ns);
}

// Returns the JSON text of the extension that is meant for credential plugins; empty if none is.
std::string PluginConfig(const Json* extensions) {
  if (extensions == nullptr || !extensions->is_array()) {
    return "";
  }
  for (const Json& item : *extensions) {
    const auto name = item.find("name");
    const auto content = item.find("extension");
    if (name != item.end() && *name == kPluginExtension && content != item.end()) {
      return codec::DumpJson(*content);
    }
  }
  return "";
}

void ReadCluster(Reader& reader, KubeconfigCluster& to) {
  reader.Read("server", to.server)
      .Read("tls-server-name", to.tls_server_name)
      .Read("proxy-url", to.proxy_url)
      .Read("insecure-skip-tls-verify", to.skip_verification)
      .Read("disable-compression", to.disable_compression);
  ReadPem(reader, "certificate-authority", to.ca_file, to.ca_pem);
  Resolve(to.file, to.ca_file);
  to.plugin_config = PluginConfig(reader.Member("extensions"));
}

void ReadExec(Reader& reader, KubeconfigUser& to) {
  to.exec = std::make_shared<ExecPlugin>();
  reader.Read("apiVersion", to.exec->api_version)
      .Read("command", to.exec->command)
      .Read("args", to.exec->arguments)
      .Read("installHint", to.exec->install_hint)
      .Read("interactiveMode", to.exec_input)
      .Read("provideClusterInfo", to.exec_wants_cluster)
      .List("env", kEntriesMax, [&](Reader& variable) {
        std::string name;
        std::string value;
        variable.Require("name").Read("name", name).Read("value", value, kSecretBytesMax);
        if (name.find('=') != std::string::npos) {
          variable.Fail("name", "must not contain =");
        }
        to.exec->environment[name] = value;
      });
  // A name without a slash is looked up in PATH.
  if (to.exec->command.find('/') != std::string::npos) {
    Resolve(to.file, to.exec->command);
  }
}

void ReadExtra(Reader& reader, std::map<std::string, std::vector<std::string>>& to) {
  const Json* extra = reader.Member("as-user-extra");
  if (extra == nullptr) {
    return;
  }
  Reader values(*extra, reader.PathOf("as-user-extra"));
  if (!extra->is_object()) {
    reader.Fail("as-user-extra", "expected an object");
    return;
  }
  for (const auto& [name, unused] : extra->items()) {
    values.Read(name, to[name]);
  }
  if (!values.status().ok()) {
    reader.Fail("as-user-extra", Message(values.status()));
  }
}

void ReadUser(Reader& reader, KubeconfigUser& to) {
  reader.Read("token", to.token, kSecretBytesMax)
      .Read("tokenFile", to.token_file)
      .Read("as", to.impersonation.user)
      .Read("as-uid", to.impersonation.uid)
      .Read("as-groups", to.impersonation.groups)
      .Object("auth-provider",
              [&](Reader& provider) { provider.Require("name").Read("name", to.auth_provider); });
  ReadExtra(reader, to.impersonation.extra);
  to.has_password = reader.Has("username") || reader.Has("password");
  ReadPem(reader, "client-certificate", to.certificate_file, to.certificate_pem);
  ReadPem(reader, "client-key", to.key_file, to.key_pem);
  reader.Object("exec", [&](Reader& exec) { ReadExec(exec, to); });
  for (std::string* path : {&to.token_file, &to.certificate_file, &to.key_file}) {
    Resolve(to.file, *path);
  }
}

// Reads the list `section`, whose items have a name and the object `member`, and adds the entries
// whose names are new to `to`.
template <typename Entry>
void ReadSection(Reader& reader, std::string_view section, std::string_view member,
                 const std::string& file, void (*read)(Reader&, Entry&),
                 std::map<std::string, Entry>& to) {
  std::map<std::string, Entry> found;
  reader.List(section, kEntriesMax, [&](Reader& item) {
    std::string name;
    item.Read("name", name);
    if (found.contains(name)) {
      item.Fail("name", fmt::format("repeats \"{}\": names must differ in a file", name));
      return;
    }
    Entry& entry = found[name];
    entry.file = file;
    item.Object(member, [&](Reader& content) { read(content, entry); });
  });
  to.merge(found);
}

std::vector<std::string> SplitPaths(const std::string& variable) {
  std::vector<std::string> paths;
  for (size_t at = 0; at <= variable.size();) {
    const size_t end = std::min(variable.find(':', at), variable.size());
    std::string path = variable.substr(at, end - at);
    if (!path.empty() && std::find(paths.begin(), paths.end(), path) == paths.end()) {
      paths.push_back(std::move(path));
    }
    at = end + 1;
  }
  return paths;
}

}  // namespace

absl::Status MergeKubeconfig(std::string_view text, const std::string& path, Kubeconfig& to) {
  to.files.push_back(path);
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return absl::OkStatus();  // kubectl accepts an empty file
  }
  const absl::StatusOr<Json> parsed = codec::ParseYaml(text);
  if (!parsed.ok()) {
    return Annotate(parsed.status(), path);
  }
  if (!parsed->is_object()) {
    return absl::InvalidArgumentError(fmt::format("{}: expected an object", path));
  }
  Reader reader(*parsed, "");
  std::string current;
  reader.Read("current-context", current);
  ReadSection(reader, "contexts", "context", path, ReadContext, to.contexts);
  ReadSection(reader, "clusters", "cluster", path, ReadCluster, to.clusters);
  ReadSection(reader, "users", "user", path, ReadUser, to.users);
  if (to.current_context.empty()) {
    to.current_context = current;
  }
  return Annotate(reader.status(), path);
}

absl::StatusOr<Kubeconfig> LoadKubeconfig(const KubeconfigPaths& paths) {
  std::vector<std::string> files = SplitPaths(paths.variable);
  if (files.size() > kFilesMax) {
    return absl::InvalidArgumentError(
        fmt::format("KUBECONFIG: names more than {} files; merge them into one", kFilesMax));
  }
  bool is_implied = false;
  if (!paths.file.empty()) {
    files = {paths.file};
  } else if (files.empty() && !paths.home.empty()) {
    files = {paths.home + "/.kube/config"};
    is_implied = true;
  }
  Kubeconfig merged;
  for (const std::string& file : files) {
    const absl::StatusOr<std::string> text = ReadSmallFile(file, kKubeconfigBytesMax);
    // A pod may have a home directory that its user cannot read; it has a service account.
    if ((absl::IsNotFound(text.status()) && paths.file.empty()) ||
        (absl::IsPermissionDenied(text.status()) && is_implied)) {
      merged.missing.push_back(file);
      continue;
    }
    CW_RETURN_IF_ERROR(text.status());
    CW_RETURN_IF_ERROR(MergeKubeconfig(*text, file, merged));
  }
  return merged;
}

}  // namespace cachewarm::kube
