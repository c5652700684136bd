// SPDX-License-Identifier: Apache-2.0
#include "operator/config.h"

#include "lib/base/status.h"
#include "lib/settings/values.h"

namespace cachewarm::op {
namespace {

constexpr size_t kIdentityBytesMax = 253;

constexpr std::string_view kPurpose =
    "cachewarm-operator: elects builders, assigns bundles to nodes, and holds and releases pods.\n"
    "Runs in the cluster as two replicas with leader election.\n\n"
    "Usage: cachewarm-operator [--config FILE] [flags]";

absl::StatusOr<std::string> ParseIdentity(std::string_view value) {
  if (value.empty() || value.size() > kIdentityBytesMax) {
    return absl::InvalidArgumentError("must have 1 to 253 characters");
  }
  return std::string(value);
}

std::vector<settings::Setting> SettingsOf(Config& config) {
  return {
      {"--kubeconfig", "", settings::Text(config.kubeconfig),
       "kubeconfig file for the API server; exec plugins are not supported",
       "the pod's service account"},
      {"--listen", "listen", settings::Listen(config.listen_address, config.listen_port),
       "address and port of /metrics, /healthz and /readyz"},
      {"--webhook-listen", "webhookListen",
       settings::Listen(config.webhook_address, config.webhook_port),
       "address and port of the webhook, served only where it is installed (before Kubernetes "
       "1.36)"},
      {"--root", "root", settings::AbsolutePath(config.root),
       "directory of the agents on every node; must be the same for the agents and the admission "
       "policy"},
      {"--leader-elect", "leaderElect", settings::Switch(config.leader_elect),
       "reconcile only while holding the Lease; set to false only if at most one operator can run"},
      {"--log-level", "logLevel", settings::Parsed(config.log_level, &ParseLogLevel),
       "log level: debug, info, warning or error; logs are JSON lines on standard error", "info"},
      {"--namespace", "", settings::Label(config.ns, "a namespace"),
       "namespace of the operator and its Lease"},
      {"--identity", "", settings::Parsed(config.identity, &ParseIdentity),
       "name of this process in the Lease", "the host name"},
      {"--workers", "workers", settings::Number(config.workers, 1, 16),
       "warmups reconciled concurrently, 1 to 16; namespaces with slow webhooks have threads of "
       "their own"},
      {"--builder-jobs-max", "builders.jobsMax",
       settings::Number(config.builder_jobs_max, 0, 1'000),
       "maximum concurrent builder Jobs in the cluster, 0 to 1000; 0 disables builder Jobs"},
      {"--fetch-nodes-max", "fetch.nodesMax", settings::Number(config.fetch_nodes_max, 1, 100'000),
       "maximum nodes that fetch from the store concurrently, over all warmups, 1 to 100000; nodes "
       "with a bound pod that has not started go first"},
      {"--harvest-interval-minutes", "harvest.intervalMinutes",
       settings::Number(config.harvest_minutes, 1, 10'080),
       "shortest time between two harvests of one bundle (spec.harvest), 1 to 10080 minutes"},
      {"--fresh-nodes-tainted", "freshNodes.tainted", settings::Switch(config.fresh_nodes_tainted),
       "set if every node joins with the startup taint cachewarm.io/warming; pods are then "
       "injected even while no suitable node exists"},
      {"--engine-logs", "engineLogs.enabled", settings::Switch(config.engine_logs),
       "read the log of each started engine once, for the duration of its start-up phases and the "
       "size of its KV cache; needs the right to get pods/log"},
  };
}

}  // namespace

settings::Table TableOf(Config& config) {
  return {.program = "cachewarm-operator",
          .purpose = kPurpose,
          .settings = SettingsOf(config),
          .requests = {},
          .foreign_keys = {"store", "registry", "byteLimit", "reserve", "nodeFacts", "driverRoots",
                           "agentWorkers", "transfer", "signature", "scrub", "limits", "redis"}};
}

absl::StatusOr<CommandLine> ParseConfig(const settings::Sources& sources) {
  CommandLine out;
  out.config.identity = sources.host_name;
  CW_ASSIGN_OR_RETURN(out.print, settings::Read(TableOf(out.config), sources));
  if (!out.print.has_value() && out.config.identity.empty()) {
    return absl::InvalidArgumentError("--identity: required, because the host has no name");
  }
  return out;
}

}  // namespace cachewarm::op
