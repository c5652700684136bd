// SPDX-License-Identifier: Apache-2.0
#include "agent/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "lib/base/status.h"

namespace cachewarm::agent {
namespace {

constexpr size_t kPathBytesMax = 1024;
constexpr size_t kHostsMax = 64;

absl::StatusOr<int64_t> WholeNumber(const std::string& value, int64_t min, int64_t max) {
  int64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || rest != end || number < min || number > max) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a whole number from {} to {}", value, min, max));
  }
  return number;
}

absl::StatusOr<std::string> AbsolutePath(const std::string& value) {
  if (value.size() < 2 || value.front() != '/' || value.size() > kPathBytesMax ||
      (value + "/").find("/../") != std::string::npos) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not an absolute path below / without \"..\"", value));
  }
  return value.ends_with('/') ? value.substr(0, value.size() - 1) : value;
}

absl::Status SetNodeName(Config& config, const std::string& value) {
  const bool fits =
      !value.empty() && value.size() <= 253 && std::all_of(value.begin(), value.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
      });
  if (!fits) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" is not the name of a node", value));
  }
  config.node_name = value;
  return absl::OkStatus();
}

absl::Status SetRoot(Config& config, const std::string& value) {
  CW_ASSIGN_OR_RETURN(config.root, AbsolutePath(value));
  return absl::OkStatus();
}

absl::Status SetStore(Config& config, const std::string& value) {
  CW_RETURN_IF_ERROR(bundle::ParseStoreUrl(value).status());
  config.store.url = value;
  return absl::OkStatus();
}

absl::Status SetInsecure(Config& config, const std::string& value) {
  config.store.insecure_hosts.clear();
  for (size_t begin = 0; begin < value.size();) {
    const size_t comma = std::min(value.find(',', begin), value.size());
    if (comma > begin) {
      config.store.insecure_hosts.push_back(value.substr(begin, comma - begin));
    }
    begin = comma + 1;
  }
  return config.store.insecure_hosts.size() <= kHostsMax
             ? absl::OkStatus()
             : absl::InvalidArgumentError(fmt::format("more than {} hosts", kHostsMax));
}

absl::Status SetCaFile(Config& config, const std::string& value) {
  CW_ASSIGN_OR_RETURN(config.store.ca_file, AbsolutePath(value));
  return absl::OkStatus();
}

absl::Status SetAuthFile(Config& config, const std::string& value) {
  CW_ASSIGN_OR_RETURN(config.store.auth_file, AbsolutePath(value));
  return absl::OkStatus();
}

absl::Status SetByteLimit(Config& config, const std::string& value) {
  CW_ASSIGN_OR_RETURN(config.byte_limit, WholeNumber(value, 0, INT64_MAX));
  return absl::OkStatus();
}

absl::Status SetNodeFacts(Config& config, const std::string& value) {
  CW_ASSIGN_OR_RETURN(config.node_facts, AbsolutePath(value));
  return absl::OkStatus();
}

absl::Status SetKubeconfig(Config& config, const std::string& value) {
  config.kubeconfig = value;
  return absl::OkStatus();
}

absl::Status SetListen(Config& config, const std::string& value) {
  const size_t colon = value.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not ADDRESS:PORT, for example 0.0.0.0:8080 or [::]:8080", value));
  }
  CW_ASSIGN_OR_RETURN(const int64_t port, WholeNumber(value.substr(colon + 1), 0, 65535));
  std::string address = value.substr(0, colon);
  if (address.size() > 1 && address.front() == '[' && address.back() == ']') {
    address = address.substr(1, address.size() - 2);
  }
  config.listen_address = address.empty() ? "0.0.0.0" : address;
  config.listen_port = static_cast<uint16_t>(port);
  return absl::OkStatus();
}

absl::Status SetWorkers(Config& config, const std::string& value) {
  CW_ASSIGN_OR_RETURN(const int64_t workers, WholeNumber(value, 1, 16));
  config.workers = static_cast<int>(workers);
  return absl::OkStatus();
}

absl::Status SetLogLevel(Config& config, const std::string& value) {
  CW_ASSIGN_OR_RETURN(config.log_level, ParseLogLevel(value));
  return absl::OkStatus();
}

constexpr std::array<Setting, 12> kSettings = {{
    {"--node-name", "CACHEWARM_NODE_NAME", "", "the host name", &SetNodeName,
     "name of this node in Kubernetes; its NodeCache has the same name"},
    {"--root", "CACHEWARM_ROOT", "root", "/var/lib/cachewarm", &SetRoot,
     "directory of the caches; must be the same as in the admission policy, on a local disk"},
    {"--store", "CACHEWARM_STORE", "store", "none", &SetStore,
     "where bundles are kept: oci://HOST[:PORT]/BASE or layout:///DIRECTORY"},
    {"--registry-insecure", "CACHEWARM_REGISTRY_INSECURE", "registry.insecure", "none",
     &SetInsecure, "hosts (HOST:PORT,...) that are spoken to over plain http; loopback always is"},
    {"--registry-ca-file", "CACHEWARM_REGISTRY_CA_FILE", "registry.caFile", "the system's",
     &SetCaFile, "PEM file with the authority that signed the registry's certificate"},
    {"--registry-auth-file", "CACHEWARM_REGISTRY_AUTH_FILE", "registry.authFile", "anonymous",
     &SetAuthFile, "docker config.json with \"auths\" for the registry"},
    {"--byte-limit", "CACHEWARM_BYTE_LIMIT", "byteLimit", "0", &SetByteLimit,
     "bytes that all caches of the node may take; 0 is no limit; what does not fit is refused"},
    {"--node-facts", "CACHEWARM_NODE_FACTS", "nodeFacts", "probed", &SetNodeFacts,
     "file that declares GPU type and CPU class instead of asking driver and processor; named in "
     "the configuration file, it may be missing on some nodes"},
    {"--kubeconfig", "CACHEWARM_KUBECONFIG", "", "the pod's service account", &SetKubeconfig,
     "kubeconfig file to reach the API server with; exec plugins are refused"},
    {"--listen", "CACHEWARM_LISTEN", "listen", "0.0.0.0:8080", &SetListen,
     "address and port of /metrics, /healthz and /readyz"},
    {"--workers", "CACHEWARM_WORKERS", "agentWorkers", "3", &SetWorkers,
     "fetches and publications at the same time, 1 to 16"},
    {"--log-level", "CACHEWARM_LOG_LEVEL", "logLevel", "info", &SetLogLevel,
     "debug, info, warning or error; one JSON line per event on standard error"},
}};

}  // namespace

std::span<const Setting> Settings() {
  return kSettings;
}

}  // namespace cachewarm::agent
