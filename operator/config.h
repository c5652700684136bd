// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "lib/api/names.h"
#include "lib/base/log.h"
#include "lib/settings/settings.h"

namespace cachewarm::op {

// Everything the operator can be told. Read once at start, then passed down by value.
struct Config {
  std::string kubeconfig;  // empty: the service account of the pod we run in
  std::string listen_address = "0.0.0.0";
  uint16_t listen_port = 8080;
  std::string webhook_address = "0.0.0.0";  // for servers without admission policies
  uint16_t webhook_port = 8443;
  std::string root{api::kDefaultRoot};  // of the agents: rendered into builder Jobs
  bool leader_elect = true;
  LogLevel log_level = LogLevel::kInfo;
  std::string ns = "cachewarm-system";  // where the operator runs and keeps its Lease
  std::string identity;                 // of this process in the Lease; the pod's name
  int workers = 2;                      // warmups reconciled at the same time
  int builder_jobs_max = 8;             // builder Jobs in the cluster at any time; 0: none
  int fetch_nodes_max = 32;             // nodes that are told to fetch at the same time
  bool node_condition = false;          // write the condition cachewarm.io/Warm to Nodes
  bool fresh_nodes_tainted = false;     // nodes join with a startup taint of ours
};

// What the command line asked for. `print` is set for --help and --version: the text to print
// before a successful exit.
struct CommandLine {
  Config config;
  std::optional<std::string> print;
};

// Every setting of the operator, each bound to its field of `config`, which must outlive the table.
settings::Table TableOf(Config& config);

// As lib/settings reads them. The file may be the one of the agents: keys that are theirs alone are
// accepted and not looked at.
absl::StatusOr<CommandLine> ParseConfig(const settings::Sources& sources);

}  // namespace cachewarm::op
