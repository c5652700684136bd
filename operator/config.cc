// SPDX-License-Identifier: Apache-2.0
#include "operator/config.h"

#include "lib/base/status.h"
#include "lib/settings/values.h"

namespace cachewarm::op {
namespace {

constexpr size_t kIdentityBytesMax = 253;

constexpr std::string_view kPurpose =
    "cachewarm-operator: decides which pod compiles, which node gets which bundle and which pod\n"
    "is held until then. Runs in the cluster as two replicas, of which the leader works.\n\n"
    "Usage: cachewarm-operator [--config FILE] [flags]";

absl::StatusOr<std::string> ParseIdentity(std::string_view value) {
  if (value.empty() || value.size() > kIdentityBytesMax) {
    return absl::InvalidArgumentError("must hold 1 to 253 characters");
  }
  return std::string(value);
}

std::vector<settings::Setting> SettingsOf(Config& config) {
  return {
      {"--kubeconfig", "CACHEWARM_KUBECONFIG", "", "the pod's service account",
       settings::Text(config.kubeconfig),
       "kubeconfig file to reach the API server with; exec plugins are refused"},
      {"--listen", "CACHEWARM_LISTEN", "listen", "0.0.0.0:8080",
       settings::Listen(config.listen_address, config.listen_port),
       "address and port of /metrics, /healthz and /readyz"},
      {"--webhook-listen", "CACHEWARM_WEBHOOK_LISTEN", "webhookListen", "0.0.0.0:8443",
       settings::Listen(config.webhook_address, config.webhook_port),
       "address and port of the webhook, served only where it is installed (before Kubernetes "
       "1.36)"},
      {"--root", "CACHEWARM_ROOT", "root", "/var/lib/cachewarm",
       settings::AbsolutePath(config.root),
       "directory of the agents on every node; must be the agents' own and the policy's"},
      {.flag = "--leader-elect",
       .environment = "CACHEWARM_LEADER_ELECT",
       .key = "leaderElect",
       .fallback = "true",
       .set = settings::Boolean(config.leader_elect),
       .help = "work only while holding the Lease; false only where a single operator can ever run",
       .is_switch = true},
      {"--log-level", "CACHEWARM_LOG_LEVEL", "logLevel", "info",
       settings::Parsed(config.log_level, &ParseLogLevel),
       "debug, info, warning or error; one JSON line per event on standard error"},
      {"--namespace", "CACHEWARM_NAMESPACE", "", "cachewarm-system",
       settings::Label(config.ns, "a namespace"),
       "namespace that the operator runs in; its Lease is kept there"},
      {"--identity", "CACHEWARM_IDENTITY", "", "the host name",
       settings::Parsed(config.identity, &ParseIdentity), "name of this process in the Lease"},
      {"--workers", "CACHEWARM_WORKERS", "workers", "2", settings::Number(config.workers, 1, 16),
       "warmups that are reconciled at the same time, 1 to 16"},
      {"--builder-jobs-max", "CACHEWARM_BUILDER_JOBS_MAX", "builders.jobsMax", "8",
       settings::Number(config.builder_jobs_max, 0, 1'000),
       "builder Jobs that may run in the cluster at the same time, 0 to 1000; 0: none is made"},
      {"--fetch-nodes-max", "CACHEWARM_FETCH_NODES_MAX", "fetch.nodesMax", "32",
       settings::Number(config.fetch_nodes_max, 1, 100'000),
       "nodes that may fetch from the store at the same time, all warmups together, 1 to 100000; "
       "those that pods wait for go first"},
      {.flag = "--node-condition",
       .environment = "CACHEWARM_NODE_CONDITION",
       .key = "nodeCondition",
       .fallback = "false",
       .set = settings::Boolean(config.node_condition),
       .help = "write the condition cachewarm.io/Warm to Nodes, for node-readiness-controller",
       .is_switch = true},
      {.flag = "--fresh-nodes-tainted",
       .environment = "CACHEWARM_FRESH_NODES_TAINTED",
       .key = "freshNodes.tainted",
       .fallback = "false",
       .set = settings::Boolean(config.fresh_nodes_tainted),
       .help = "say that every node joins with the startup taint cachewarm.io/warming: pods have "
               "the cache also while no node fits them yet",
       .is_switch = true},
  };
}

}  // namespace

settings::Table TableOf(Config& config) {
  return {.program = "cachewarm-operator",
          .purpose = kPurpose,
          .settings = SettingsOf(config),
          .requests = {},
          .foreign_keys = {"store", "registry", "byteLimit", "nodeFacts", "agentWorkers",
                           "transfer", "signature", "scrub", "limits"}};
}

absl::StatusOr<CommandLine> ParseConfig(const settings::Sources& sources) {
  CommandLine out;
  out.config.identity = sources.host_name;
  CW_ASSIGN_OR_RETURN(out.print, settings::Read(TableOf(out.config), sources));
  if (!out.print.has_value() && out.config.identity.empty()) {
    return absl::InvalidArgumentError("--identity: the host has no name; give one");
  }
  return out;
}

}  // namespace cachewarm::op
