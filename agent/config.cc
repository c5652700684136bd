// SPDX-License-Identifier: Apache-2.0
#include "agent/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/status.h"
#include "lib/settings/values.h"

namespace cachewarm::agent {
namespace {

using settings::AbsolutePath;
using settings::GivenValue;
using settings::Setter;
using settings::Setting;

constexpr size_t kHostsMax = 64;
constexpr int64_t kScrubSecondsMin = 60;
constexpr int64_t kScrubSecondsMax = 30 * 24 * 3600;

constexpr std::string_view kPurpose =
    "cachewarm-agent runs on each node. It prepares the directories that pods mount, captures\n"
    "and publishes the caches that builders compile, and fetches, verifies and activates bundles\n"
    "before pods start. It reads its work from the NodeCache of its node and reports in the\n"
    "status of that object.\n\n"
    "Usage: cachewarm-agent --store URL [--config FILE] [flags]\n"
    "       cachewarm-agent --print-node-facts [--node-facts FILE]";

Setter StoreUrl(std::string& to) {
  return [&to](const GivenValue& given) -> absl::Status {
    CW_RETURN_IF_ERROR(bundle::ParseStoreUrl(given.value).status());
    to = given.value;
    return absl::OkStatus();
  };
}

Setter Hosts(std::vector<std::string>& to) {
  return [&to](const GivenValue& given) {
    const std::string& value = given.value;
    to.clear();
    for (size_t begin = 0; begin < value.size();) {
      const size_t comma = std::min(value.find(',', begin), value.size());
      if (comma > begin) {
        to.push_back(value.substr(begin, comma - begin));
      }
      begin = comma + 1;
    }
    return to.size() <= kHostsMax ? absl::OkStatus()
                                  : absl::InvalidArgumentError(
                                        fmt::format("at most {} entries are allowed", kHostsMax));
  };
}

Setter BytesPerSecond(int64_t& to) {
  return [&to](const GivenValue& given) -> absl::Status {
    CW_ASSIGN_OR_RETURN(to, settings::WholeNumber(given.value, 0, INT64_MAX));
    return to == 0 || to >= bundle::kBytesPerSecondMin
               ? absl::OkStatus()
               : absl::InvalidArgumentError(
                     fmt::format("\"{}\": expected 0 (no limit) or at least {}", given.value,
                                 bundle::kBytesPerSecondMin));
  };
}

// Returns a setter for a number of bytes, or a share of the file system ("10%").
Setter ByteLimit(Config& config) {
  return [&config](const GivenValue& given) -> absl::Status {
    const std::string& text = given.value;
    if (!text.ends_with('%')) {
      CW_ASSIGN_OR_RETURN(config.byte_limit, settings::WholeNumber(text, 0, INT64_MAX));
      config.disk.limit = 0;
      return absl::OkStatus();
    }
    CW_ASSIGN_OR_RETURN(const int64_t percent,
                        settings::WholeNumber(text.substr(0, text.size() - 1), 1, 100));
    config.byte_limit = 0;
    config.disk.limit = static_cast<int>(percent);
    return absl::OkStatus();
  };
}

Setter Mirrors(std::vector<std::string>& to) {
  return [&to](const GivenValue& given) -> absl::Status {
    CW_RETURN_IF_ERROR(Hosts(to)(given));
    for (const std::string& mirror : to) {
      CW_RETURN_IF_ERROR(bundle::ParseMirror(mirror).status());
    }
    return absl::OkStatus();
  };
}

// Returns a setter that uses the given proxy for both http and https requests.
Setter Proxy(http::ProxyOptions& to) {
  return [&to](const GivenValue& given) -> absl::Status {
    CW_RETURN_IF_ERROR(http::ParseProxy(given.value).status());
    to.https = given.value;
    to.http = given.value;
    return absl::OkStatus();
  };
}

// Returns a setter for the seconds between two scrubs of a tree. Zero means never; the minimum of
// one minute keeps scrubs from using all of the disk's bandwidth.
Setter ScrubSeconds(int64_t& to) {
  return [&to](const GivenValue& given) -> absl::Status {
    CW_ASSIGN_OR_RETURN(to, settings::WholeNumber(given.value, 0, kScrubSecondsMax));
    return to == 0 || to >= kScrubSecondsMin
               ? absl::OkStatus()
               : absl::InvalidArgumentError(fmt::format("\"{}\": expected 0 (never) or at least {}",
                                                        given.value, kScrubSecondsMin));
  };
}

// Returns a setter for the path of the node facts file. A flag or environment variable is set for
// this node alone, so the facts file must then exist. The configuration file is shared by all
// nodes, and some of them may have no facts file.
Setter NodeFacts(Config& config) {
  return [&config](const GivenValue& given) {
    config.node_facts_must_exist = given.origin != settings::Origin::kFile;
    return AbsolutePath(config.node_facts)(given);
  };
}

Setter DriverRoots(std::vector<std::string>& to) {
  return [&to](const GivenValue& given) -> absl::Status {
    CW_RETURN_IF_ERROR(Hosts(to)(given));
    for (std::string& root : to) {
      std::string path;
      CW_RETURN_IF_ERROR(AbsolutePath(path)({.value = root, .origin = given.origin}));
      root = std::move(path);
    }
    return absl::OkStatus();
  };
}

std::vector<Setting> RegistrySettings(bundle::StoreOptions& store) {
  return {
      {.flag = "--registry-insecure",
       .environment = "CACHEWARM_REGISTRY_INSECURE",
       .key = "registry.insecure",
       .fallback = "none",
       .set = Hosts(store.insecure_hosts),
       .help = "registries to access over plain HTTP (HOST:PORT,...); loopback is always allowed",
       .is_list = true},
      {"--registry-ca-file", "CACHEWARM_REGISTRY_CA_FILE", "registry.caFile", "the system's",
       AbsolutePath(store.ca_file),
       "PEM file with the CA certificates that sign the registry's certificate"},
      {"--registry-client-certificate-file", "CACHEWARM_REGISTRY_CLIENT_CERTIFICATE_FILE",
       "registry.clientCertificateFile", "none", AbsolutePath(store.certificate_file),
       "PEM file with the client certificate chain for registries that require one"},
      {"--registry-client-key-file", "CACHEWARM_REGISTRY_CLIENT_KEY_FILE", "registry.clientKeyFile",
       "none", AbsolutePath(store.key_file),
       "PEM file with the private key of the client "
       "certificate"},
      {"--registry-auth-file", "CACHEWARM_REGISTRY_AUTH_FILE", "registry.authFile", "anonymous",
       AbsolutePath(store.auth_file), "docker config.json with \"auths\" for the registry"},
      {.flag = "--registry-mirrors",
       .environment = "CACHEWARM_REGISTRY_MIRRORS",
       .key = "registry.mirrors",
       .fallback = "none",
       .set = Mirrors(store.mirrors),
       .help = "mirrors (HOST[:PORT][/BASE],...) tried in order before the registry "
               "for content with a digest; a failing mirror is skipped for a while",
       .is_list = true},
      {"--registry-proxy", "CACHEWARM_REGISTRY_PROXY", "registry.proxy", "HTTPS_PROXY, HTTP_PROXY",
       Proxy(store.proxy), "proxy (http://HOST[:PORT]) for registries that NO_PROXY does not list"},
      {"--registry-max-connections", "CACHEWARM_REGISTRY_MAX_CONNECTIONS",
       "registry.maxConnections", "0", settings::Number(store.connections_max, 0, 1024),
       "maximum concurrent downloads from each registry; uploads have a separate limit of the same "
       "number; 0 is no limit"},
      {"--registry-bytes-per-second", "CACHEWARM_REGISTRY_BYTES_PER_SECOND",
       "registry.bytesPerSecond", "0", BytesPerSecond(store.bytes_per_second),
       "maximum bytes per second of all downloads of this node together; 0 is no limit"},
  };
}

// Limits for bundles, which are untrusted input.
std::vector<Setting> LimitSettings(bundle::Limits& limits) {
  return {
      {"--limit-files", "CACHEWARM_LIMIT_FILES", "limits.files", "200000",
       settings::Number(limits.entries_max, 1, bundle::Limits().entries_max),
       "maximum files in a bundle, 1 to 200000; larger bundles are rejected"},
      {"--limit-file-bytes", "CACHEWARM_LIMIT_FILE_BYTES", "limits.fileBytes", "8589934592",
       settings::Number(limits.file_bytes_max, 1, INT64_MAX),
       "maximum bytes of each file in a bundle"},
      {"--limit-bytes", "CACHEWARM_LIMIT_BYTES", "limits.bytes", "68719476736",
       settings::Number(limits.total_bytes_max, 1, INT64_MAX),
       "maximum uncompressed bytes of all files in a bundle together"},
      {"--limit-ratio", "CACHEWARM_LIMIT_RATIO", "limits.ratio", "400",
       settings::Number(limits.ratio_max, 1, 1'000'000),
       "maximum ratio of uncompressed to compressed bytes, for bundles above 64 MiB uncompressed"},
  };
}

std::vector<Setting> SettingsOf(Config& config) {
  std::vector<Setting> all = {
      {"--node-name", "CACHEWARM_NODE_NAME", "", "the host name",
       settings::Subdomain(config.node_name, "a node"),
       "name of this node in Kubernetes; the NodeCache of the node has the same name"},
      {"--root", "CACHEWARM_ROOT", "root", "/var/lib/cachewarm", AbsolutePath(config.root),
       "root directory of all caches, on a local disk; must match the path in the admission "
       "policy"},
      {"--store", "CACHEWARM_STORE", "store", "none", StoreUrl(config.store.url),
       "store of the bundles: oci://HOST[:PORT]/BASE or layout:///DIRECTORY"},
      {"--byte-limit", "CACHEWARM_BYTE_LIMIT", "byteLimit", "10%", ByteLimit(config),
       "maximum bytes of all caches on the node, or a percentage of the file system of --root; "
       "trees "
       "that no pod uses are removed first, and bundles that do not fit are not fetched; 0 is no "
       "limit"},
      {"--reserve-bytes-percent", "CACHEWARM_RESERVE_BYTES_PERCENT", "reserve.bytesPercent", "12",
       settings::Number(config.disk.reserve_bytes, 0, 100),
       "percentage of the file system of --root that caches leave free, and at least 1 GiB; keep "
       "it "
       "above kubelet's eviction threshold nodefs.available (10%); 0 leaves 64 MiB free"},
      {"--reserve-inodes-percent", "CACHEWARM_RESERVE_INODES_PERCENT", "reserve.inodesPercent", "6",
       settings::Number(config.disk.reserve_inodes, 0, 100),
       "percentage of the inodes that caches leave free; keep it above kubelet's eviction "
       "threshold "
       "nodefs.inodesFree (5%); 0 reserves none"},
      {"--node-facts", "CACHEWARM_NODE_FACTS", "nodeFacts", "probed", NodeFacts(config),
       "file that declares GPU type and CPU class, used instead of probing driver and processor; "
       "if the configuration file sets this path, nodes that lack the file are probed"},
      {.flag = "--driver-roots",
       .environment = "CACHEWARM_DRIVER_ROOTS",
       .key = "driverRoots",
       .fallback = "none",
       .set = DriverRoots(config.driver_roots),
       .help = "directories (DIR,...) into which a GPU driver is installed, searched for "
               "libnvidia-ml.so.1 and libcuda.so.1 after the system's directories",
       .is_list = true},
      {"--kubeconfig", "CACHEWARM_KUBECONFIG", "", "the pod's service account",
       settings::Text(config.kubeconfig),
       "kubeconfig file for the API server; exec plugins are not supported"},
      {"--listen", "CACHEWARM_LISTEN", "listen", "0.0.0.0:8080",
       settings::Listen(config.listen_address, config.listen_port),
       "address and port of /metrics, /healthz and /readyz"},
      {"--workers", "CACHEWARM_WORKERS", "agentWorkers", "3",
       settings::Number(config.workers, 1, 16),
       "maximum concurrent fetches and publications, 1 to 16"},
      {"--transfer-threads", "CACHEWARM_TRANSFER_THREADS", "transfer.threads", "2",
       settings::Number(config.transfer_threads, 1, 16),
       "threads for each fetch (verify, decompress, write) and publication (read, compress), 1 to "
       "16; each thread uses about 10 MB of memory"},
      {"--signature-public-key-file", "CACHEWARM_SIGNATURE_PUBLIC_KEY_FILE",
       "signature.publicKeyFile", "none", AbsolutePath(config.keys.public_key_file),
       "PEM file of public keys; only bundles signed by one of them (cachewarm sign, cosign sign "
       "--key) are fetched"},
      {"--signature-private-key-file", "CACHEWARM_SIGNATURE_PRIVATE_KEY_FILE",
       "signature.privateKeyFile", "none", AbsolutePath(config.keys.private_key_file),
       "PEM file of the private key that signs published bundles; keep it secret: anyone who can "
       "read it can sign bundles"},
      {"--scrub-interval-seconds", "CACHEWARM_SCRUB_INTERVAL_SECONDS", "scrub.intervalSeconds",
       "3600", ScrubSeconds(config.scrub_seconds),
       "seconds between two scrubs of an active tree (comparisons of its files with its bundles), "
       "60 to 2592000; 0 disables scrubbing"},
      {"--redis-endpoint", "CACHEWARM_REDIS_ENDPOINT", "redis.endpoint", "false",
       settings::Boolean(config.redis_endpoint),
       "true: serve the Redis remote caches of torch to pods of warmups that select the preset "
       "torchinductor-redis, on a Unix socket in the directory that they mount"},
      {"--log-level", "CACHEWARM_LOG_LEVEL", "logLevel", "info",
       settings::Parsed(config.log_level, &ParseLogLevel),
       "debug, info, warning or error; logs are JSON lines on standard error"},
  };
  std::vector<Setting> limits = LimitSettings(config.limits);
  all.insert(all.end() - 1, limits.begin(), limits.end());
  std::vector<Setting> registry = RegistrySettings(config.store);
  // The settings of the registry follow --store, the third setting.
  all.insert(all.begin() + 3, registry.begin(), registry.end());
  return all;
}

}  // namespace

settings::Table TableOf(CommandLine& command) {
  return {.program = "cachewarm-agent",
          .purpose = kPurpose,
          .settings = SettingsOf(command.config),
          .requests = {{"--print-node-facts",
                        "print GPU type and CPU class of this node as JSON and exit",
                        &command.print_node_facts}},
          .foreign_keys = {"leaderElect", "webhookListen", "workers", "fetch", "nodeCondition",
                           "freshNodes", "builders"}};
}

std::string HelpText() {
  CommandLine unused;
  return settings::HelpText(TableOf(unused));
}

absl::StatusOr<CommandLine> ParseConfig(const settings::Sources& sources) {
  CommandLine out;
  out.config.node_name = sources.host_name;
  CW_ASSIGN_OR_RETURN(out.print, settings::Read(TableOf(out), sources));
  if (out.print.has_value() || out.print_node_facts) {
    return out;
  }
  if (out.config.store.url.empty()) {
    return absl::InvalidArgumentError(
        "--store: required; set a registry (oci://HOST/BASE) or a directory (layout:///DIR)");
  }
  CW_RETURN_IF_ERROR(http::ReadProxies(sources.environment, out.config.store.proxy));
  if (const auto store = bundle::ParseStoreUrl(out.config.store.url);
      !out.config.store.mirrors.empty() && store->kind != bundle::StoreUrl::Kind::kRegistry) {
    return absl::InvalidArgumentError(
        "registry.mirrors: not supported for a store in a directory; remove registry.mirrors or "
        "use "
        "a registry as the store (oci://HOST/BASE)");
  }
  if (out.config.store.certificate_file.empty() != out.config.store.key_file.empty()) {
    return absl::InvalidArgumentError(
        "registry.clientCertificateFile, registry.clientKeyFile: set both or none");
  }
  if (out.config.node_name.empty()) {
    return absl::InvalidArgumentError("--node-name: required, because the host has no name");
  }
  return out;
}

}  // namespace cachewarm::agent
