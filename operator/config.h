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

// All settings of the operator. Read once at start and passed by value.
struct Config {
  std::string kubeconfig;  // empty: the pod's service account
  std::string listen_address = "0.0.0.0";
  uint16_t listen_port = 8080;
  std::string webhook_address = "0.0.0.0";  // used only while the webhook is installed
  uint16_t webhook_port = 8443;
  std::string root{api::kDefaultRoot};  // directory of the agents on every node
  bool leader_elect = true;
  LogLevel log_level = LogLevel::kInfo;
  std::string ns = "cachewarm-system";  // namespace of the operator and its Lease
  std::string identity;                 // name of this process in the Lease; default: the host name
  int workers = 4;                      // warmups reconciled concurrently
  int builder_jobs_max = 8;             // maximum concurrent builder Jobs in the cluster; 0: none
  int fetch_nodes_max = 32;             // maximum nodes that fetch concurrently, over all warmups
  int harvest_minutes = 30;             // shortest time between two harvests of one key
  bool fresh_nodes_tainted = false;     // every node joins with the cachewarm startup taint
  bool engine_logs = false;             // read what engines log about their start
};

// Result of parsing the command line. For --help and --version, `print` is the text to print before
// exiting successfully.
struct CommandLine {
  Config config;
  std::optional<std::string> print;
};

// Returns the table of all settings, bound to the fields of `config`, which must outlive the table.
settings::Table TableOf(Config& config);

// Parses `sources` with lib/settings. The configuration file may be shared with the agents, so
// settings of the agents are accepted and ignored.
absl::StatusOr<CommandLine> ParseConfig(const settings::Sources& sources);

}  // namespace cachewarm::op
