// SPDX-License-Identifier: Apache-2.0
#include "agent/config.h"

#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/settings/values.h"

namespace cachewarm::agent {
namespace {

using settings::AbsolutePath;
using settings::GivenValue;
using settings::Setter;
using settings::Setting;
using settings::Variable;

constexpr size_t kListMax = 64;
// Keeps scrubs from using all of the disk's bandwidth.
constexpr int64_t kScrubSecondsMin = 60;
constexpr int64_t kScrubSecondsMax = 30 * 24 * 3600;

constexpr std::string_view kPurpose =
    "cachewarm-agent runs on each node. It prepares the directories that pods mount, captures\n"
    "and publishes the caches that builders compile, and fetches, verifies and activates bundles\n"
    "before pods start. It reads its work from the NodeCache of its node and reports in the\n"
    "status of that object.\n\n"
    "Usage: cachewarm-agent --store URL [--config FILE] [flags]\n"
    "       cachewarm-agent --print-node-facts [--node-facts FILE]";

Variable StoreUrl(std::string& to) {
  return {[&to](const GivenValue& given) -> absl::Status {
            CW_RETURN_IF_ERROR(bundle::ParseStoreUrl(given.value).status());
            to = given.value;
            return absl::OkStatus();
          },
          "none"};
}

// Returns a list of texts, each of which `check` replaces or rejects.
Variable List(std::vector<std::string>& to, absl::Status (*check)(std::string& item)) {
  const Setter set = [&to, check](const GivenValue& given) -> absl::Status {
    to = absl::StrSplit(given.value, ',', absl::SkipEmpty());
    if (to.size() > kListMax) {
      return absl::InvalidArgumentError(fmt::format("at most {} entries are allowed", kListMax));
    }
    for (std::string& item : to) {
      CW_RETURN_IF_ERROR(check(item));
    }
    return absl::OkStatus();
  };
  return {set, "none", settings::Form::kList};
}

absl::Status AcceptHost(std::string& /*host*/) {
  return absl::OkStatus();
}

// Returns a number of bytes, or a share of the file system ("10%").
Variable ByteLimit(Config& config) {
  return {[&config](const GivenValue& given) -> absl::Status {
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
          },
          fmt::format("{}%", config.disk.limit)};
}

absl::Status CheckMirror(std::string& mirror) {
  return bundle::ParseMirror(mirror).status();
}

absl::Status CheckDriverRoot(std::string& root) {
  const std::string given = root;
  return AbsolutePath(root).set({.value = given});
}

// Returns the setting of a proxy for both http and https requests.
Variable Proxy(http::ProxyOptions& to) {
  return {[&to](const GivenValue& given) -> absl::Status {
            CW_RETURN_IF_ERROR(http::ParseProxy(given.value).status());
            to.https = given.value;
            to.http = given.value;
            return absl::OkStatus();
          },
          "HTTPS_PROXY, HTTP_PROXY"};
}

// Returns a number of which 0 turns something off, as `off` says, and any other is at least `min`.
Variable ZeroOrAtLeast(int64_t& to, std::string_view off, int64_t min, int64_t max) {
  Variable variable = settings::Number(to, 0, max);
  variable.set = [&to, off, min, set = variable.set](const GivenValue& given) -> absl::Status {
    CW_RETURN_IF_ERROR(set(given));
    return to == 0 || to >= min
               ? absl::OkStatus()
               : absl::InvalidArgumentError(
                     fmt::format("\"{}\": expected 0 ({}) or at least {}", given.value, off, min));
  };
  return variable;
}

// Returns the path of the node facts file. A flag or environment variable is set for this node
// alone, so the facts file must then exist. The configuration file is shared by all nodes, and some
// of them may have no facts file.
Variable NodeFacts(Config& config) {
  return {[&config](const GivenValue& given) {
            config.node_facts_must_exist = given.origin != settings::Origin::kFile;
            return AbsolutePath(config.node_facts).set(given);
          },
          "probed"};
}

std::vector<Setting> RegistrySettings(bundle::StoreOptions& store) {
  return {
      {"--registry-insecure", "registry.insecure", List(store.insecure_hosts, &AcceptHost),
       "registries to access over plain HTTP (HOST:PORT,...); loopback is always allowed"},
      {"--registry-ca-file", "registry.caFile", AbsolutePath(store.ca_file),
       "PEM file with the CA certificates that sign the registry's certificate", "the system's"},
      {"--registry-client-certificate-file", "registry.clientCertificateFile",
       AbsolutePath(store.certificate_file),
       "PEM file with the client certificate chain for registries that require one"},
      {"--registry-client-key-file", "registry.clientKeyFile", AbsolutePath(store.key_file),
       "PEM file with the private key of the client certificate"},
      {"--registry-auth-file", "registry.authFile", AbsolutePath(store.auth_file),
       "docker config.json with \"auths\" for the registry", "anonymous"},
      {"--registry-mirrors", "registry.mirrors", List(store.mirrors, &CheckMirror),
       "mirrors (HOST[:PORT][/BASE],...) tried in order before the registry for content with a "
       "digest; a failing mirror is skipped for a while"},
      {"--registry-proxy", "registry.proxy", Proxy(store.proxy),
       "proxy (http://HOST[:PORT]) for registries that NO_PROXY does not list"},
      {"--registry-max-connections", "registry.maxConnections",
       settings::Number(store.connections_max, 0, 1024),
       "maximum concurrent downloads from each registry; uploads have a separate limit of the same "
       "number; 0 is no limit"},
      {"--registry-bytes-per-second", "registry.bytesPerSecond",
       ZeroOrAtLeast(store.bytes_per_second, "no limit", bundle::kBytesPerSecondMin, INT64_MAX),
       "maximum bytes per second of all downloads of this node together; 0 is no limit"},
  };
}

// Limits for bundles, which are untrusted input.
std::vector<Setting> LimitSettings(bundle::Limits& limits) {
  return {
      {"--limit-files", "limits.files", settings::Number(limits.entries_max, 1, limits.entries_max),
       "maximum files in a bundle, 1 to 200000; larger bundles are rejected"},
      {"--limit-file-bytes", "limits.fileBytes",
       settings::Number(limits.file_bytes_max, 1, INT64_MAX),
       "maximum bytes of each file in a bundle"},
      {"--limit-bytes", "limits.bytes", settings::Number(limits.total_bytes_max, 1, INT64_MAX),
       "maximum uncompressed bytes of all files in a bundle together"},
      {"--limit-ratio", "limits.ratio", settings::Number(limits.ratio_max, 1, 1'000'000),
       "maximum ratio of uncompressed to compressed bytes, for bundles above 64 MiB uncompressed"},
  };
}

std::vector<Setting> SettingsOf(Config& config) {
  std::vector<Setting> all = {
      {"--node-name", "", settings::Subdomain(config.node_name, "a node"),
       "name of this node in Kubernetes; the NodeCache of the node has the same name",
       "the host name"},
      {"--root", "root", AbsolutePath(config.root),
       "root directory of all caches, on a local disk; must match the path in the admission "
       "policy"},
      {"--store", "store", StoreUrl(config.store.url),
       "store of the bundles: oci://HOST[:PORT]/BASE or layout:///DIRECTORY"},
      {"--byte-limit", "byteLimit", ByteLimit(config),
       "maximum bytes of all caches on the node, or a percentage of the file system of --root; "
       "trees that no pod uses are removed first, and bundles that do not fit are not fetched; 0 "
       "is no limit"},
      {"--reserve-bytes-percent", "reserve.bytesPercent",
       settings::Number(config.disk.reserve_bytes, 0, 100),
       "percentage of the file system of --root that caches leave free, and at least 1 GiB; keep "
       "it above kubelet's eviction threshold nodefs.available (10%); 0 leaves 64 MiB free"},
      {"--reserve-inodes-percent", "reserve.inodesPercent",
       settings::Number(config.disk.reserve_inodes, 0, 100),
       "percentage of the inodes that caches leave free; keep it above kubelet's eviction "
       "threshold nodefs.inodesFree (5%); 0 reserves none"},
      {"--node-facts", "nodeFacts", NodeFacts(config),
       "file that declares GPU type and CPU class, used instead of probing driver and processor; "
       "if the configuration file sets this path, nodes that lack the file are probed"},
      {"--driver-roots", "driverRoots", List(config.driver_roots, &CheckDriverRoot),
       "directories (DIR,...) into which a GPU driver is installed, searched for "
       "libnvidia-ml.so.1 and libcuda.so.1 after the system's directories"},
      {"--kubeconfig", "", settings::Text(config.kubeconfig),
       "kubeconfig file for the API server; exec plugins are not supported",
       "the pod's service account"},
      {"--factor-salt-file", "", AbsolutePath(config.factor_salt_file),
       "file with the salt of the Secret cachewarm-engine-salt, with which the values in vLLM's "
       "cache_key_factors.json are hashed; it may appear later",
       "the file is not read"},
      {"--listen", "listen", settings::Listen(config.listen_address, config.listen_port),
       "address and port of /metrics, /healthz and /readyz"},
      {"--workers", "agentWorkers", settings::Number(config.workers, 1, 16),
       "maximum concurrent fetches, 1 to 16; publications use one more thread, and idle ones of "
       "these"},
      {"--transfer-threads", "transfer.threads", settings::Number(config.transfer_threads, 1, 16),
       "threads for each fetch (verify, decompress, write) and publication (read, compress), 1 to "
       "16; each thread uses about 10 MB of memory"},
      {"--signature-public-key-file", "signature.publicKeyFile",
       AbsolutePath(config.keys.public_key_file),
       "PEM file of public keys; only bundles signed by one of them (cachewarm sign, cosign sign "
       "--key) are fetched"},
      {"--signature-private-key-file", "signature.privateKeyFile",
       AbsolutePath(config.keys.private_key_file),
       "PEM file of the private key that signs published bundles; keep it secret: anyone who can "
       "read it can sign bundles"},
      {"--scrub-interval-seconds", "scrub.intervalSeconds",
       ZeroOrAtLeast(config.scrub_seconds, "never", kScrubSecondsMin, kScrubSecondsMax),
       "seconds between two scrubs of an active tree (comparisons of its files with its bundles), "
       "60 to 2592000; 0 disables scrubbing"},
      {"--redis-endpoint", "redis.endpoint", settings::Boolean(config.redis_endpoint),
       "true: serve the Redis remote caches of torch to pods of warmups that select the preset "
       "torchinductor-redis, on a Unix socket in the directory that they mount"},
      {"--log-level", "logLevel", settings::Parsed(config.log_level, &ParseLogLevel),
       "debug, info, warning or error; logs are JSON lines on standard error", "info"},
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
          .foreign_keys = {"leaderElect", "webhookListen", "workers", "fetch", "freshNodes",
                           "builders", "engineLogs", "harvest"}};
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
