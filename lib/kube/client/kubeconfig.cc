// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <filesystem>
#include <string>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/base64.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"
#include "lib/http/text/url.h"
#include "lib/kube/client/config.h"
#include "lib/kube/client/small_file.h"
#include "lib/kube/core/object.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

constexpr size_t kKubeconfigBytesMax = 4U << 20U;

// An unsupported field of a kubeconfig, and the alternative to use.
struct UnsupportedField {
  std::string_view field;
  std::string_view remedy;
};
constexpr std::array kUnsupportedUserFields = {
    UnsupportedField{"exec",
                     "credential plugins are not run; create a token and set the field token"},
    UnsupportedField{"auth-provider", "Kubernetes has removed auth providers; use token"},
    UnsupportedField{"username", "Kubernetes has removed basic authentication; use token"},
    UnsupportedField{"password", "Kubernetes has removed basic authentication; use token"},
    UnsupportedField{"as", "impersonation is not supported; use a user that has the rights itself"},
};
constexpr std::array kUnsupportedClusterFields = {
    UnsupportedField{"proxy-url",
                     "proxies are not supported; use a server address that needs none"},
    UnsupportedField{"tls-server-name",
                     "is not supported; use a server address that is in the certificate"},
};

absl::Status RejectUnsupported(const Json& object, const std::string& path,
                               std::span<const UnsupportedField> list) {
  for (const UnsupportedField& unsupported : list) {
    if (At(object, {unsupported.field}) != nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("{}.{}: {}", path, unsupported.field, unsupported.remedy));
    }
  }
  return absl::OkStatus();
}

// Returns the object `member` of the item `name` in the list `section` (contexts, clusters or
// users).
absl::StatusOr<Json> Named(const Json& config, std::string_view section, const std::string& name,
                           std::string_view member) {
  const Json* list = At(config, {section});
  if (list != nullptr && list->is_array()) {
    for (const Json& item : *list) {
      const Json* found = At(item, {member});
      if (TextAt(item, {"name"}) == name && found != nullptr && found->is_object()) {
        return *found;
      }
    }
  }
  return absl::InvalidArgumentError(fmt::format("{}: no entry is named \"{}\"", section, name));
}

std::string Absolute(const std::filesystem::path& folder, const std::string& path) {
  return path.empty() ? path : (folder / path).lexically_normal().string();
}

// Arguments of ReadPem(), which reads the field <name>-data (base64) into `pem` or, if it is
// missing, the field <name> (a path) into `file`, as kubectl does.
struct PemField {
  std::string_view name;
  std::string* file;
  std::string* pem;
};
absl::Status ReadPem(const Json& object, const std::filesystem::path& folder,
                     const PemField& field) {
  const std::string data_field = fmt::format("{}-data", field.name);
  if (const std::string encoded = TextAt(object, {data_field}); !encoded.empty()) {
    absl::StatusOr<std::string> pem = codec::DecodeBase64(encoded);
    if (!pem.ok()) {
      return Annotate(pem.status(), data_field);
    }
    *field.pem = *std::move(pem);
    return absl::OkStatus();
  }
  *field.file = Absolute(folder, TextAt(object, {field.name}));
  return absl::OkStatus();
}

absl::Status ReadCluster(const Json& cluster, const std::filesystem::path& folder,
                         ClusterConfig& config) {
  CW_RETURN_IF_ERROR(RejectUnsupported(cluster, "cluster", kUnsupportedClusterFields));
  if (const Json* insecure = At(cluster, {"insecure-skip-tls-verify"});
      insecure != nullptr && *insecure == true) {
    return absl::InvalidArgumentError(
        "cluster.insecure-skip-tls-verify: certificates are always verified; set "
        "certificate-authority");
  }
  config.server = TextAt(cluster, {"server"});
  absl::StatusOr<http::Url> url = http::Url::Parse(config.server);
  if (!url.ok()) {
    return Annotate(url.status(), "cluster.server");
  }
  while (config.server.ends_with('/')) {
    config.server.pop_back();
  }
  return ReadPem(
      cluster, folder,
      {.name = "certificate-authority", .file = &config.tls.ca_file, .pem = &config.tls.ca_pem});
}

absl::Status ReadUser(const Json& user, const std::filesystem::path& folder,
                      ClusterConfig& config) {
  CW_RETURN_IF_ERROR(RejectUnsupported(user, "user", kUnsupportedUserFields));
  config.token_file = Absolute(folder, TextAt(user, {"tokenFile"}));
  config.token = config.token_file.empty() ? TextAt(user, {"token"}) : "";
  CW_RETURN_IF_ERROR(ReadPem(user, folder,
                             {.name = "client-certificate",
                              .file = &config.tls.certificate_file,
                              .pem = &config.tls.certificate_pem}));
  return ReadPem(user, folder,
                 {.name = "client-key", .file = &config.tls.key_file, .pem = &config.tls.key_pem});
}

}  // namespace

absl::StatusOr<ClusterConfig> KubeconfigFile(const std::string& path, const std::string& context) {
  CW_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kKubeconfigBytesMax));
  absl::StatusOr<Json> parsed = codec::ParseYaml(text);
  if (!parsed.ok()) {
    return Annotate(parsed.status(), path);
  }
  const auto read = [&]() -> absl::StatusOr<ClusterConfig> {
    const std::string name = context.empty() ? TextAt(*parsed, {"current-context"}) : context;
    if (name.empty()) {
      return absl::InvalidArgumentError(
          "current-context: is not set; set it to the name of a context");
    }
    CW_ASSIGN_OR_RETURN(const Json chosen, Named(*parsed, "contexts", name, "context"));
    CW_ASSIGN_OR_RETURN(const Json cluster,
                        Named(*parsed, "clusters", TextAt(chosen, {"cluster"}), "cluster"));
    CW_ASSIGN_OR_RETURN(const Json user, Named(*parsed, "users", TextAt(chosen, {"user"}), "user"));
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    ClusterConfig config;
    CW_RETURN_IF_ERROR(ReadCluster(cluster, folder, config));
    CW_RETURN_IF_ERROR(ReadUser(user, folder, config));
    if (const std::string ns = TextAt(chosen, {"namespace"}); !ns.empty()) {
      config.default_namespace = ns;
    }
    return config;
  };
  absl::StatusOr<ClusterConfig> config = read();
  if (!config.ok()) {
    return Annotate(config.status(), path);
  }
  return config;
}

}  // namespace cachewarm::kube
