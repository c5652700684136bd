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
  std::string webhook_address = "0.0.0.0";  // used only if API servers lack admission policies
  uint16_t webhook_port = 8443;
  std::string root{api::kDefaultRoot};  // directory of the agents; rendered into builder Jobs
  bool leader_elect = true;
  LogLevel log_level = LogLevel::kInfo;
  std::string ns = "cachewarm-system";  // namespace of the operator and its Lease
  std::string identity;                 // name of this process in the Lease: the pod's name
  int workers = 2;                      // warmups reconciled concurrently
  int builder_jobs_max = 8;             // concurrent builder Jobs in the cluster; 0: none
  int fetch_nodes_max = 32;             // nodes that may fetch concurrently
  bool node_condition = false;          // write the condition cachewarm.io/Warm to Nodes
  bool fresh_nodes_tainted = false;     // nodes join the cluster with the cachewarm startup taint
};

// Result of parsing the command line. `print` is set for --help and --version: the text to print
// before a successful exit.
struct CommandLine {
  Config config;
  std::optional<std::string> print;
};

// Returns the table of all settings, bound to the fields of `config`, which must outlive the table.
settings::Table TableOf(Config& config);

// Parses `sources` as lib/settings does. The configuration file may be shared with the agents:
// settings that only agents have are accepted and ignored.
absl::StatusOr<CommandLine> ParseConfig(const settings::Sources& sources);

}  // namespace cachewarm::op
