// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/sync/disk_space.h"
#include "lib/base/log.h"
#include "lib/bundle/policy.h"
#include "lib/bundle/signature/keys.h"
#include "lib/bundle/store/open.h"
#include "lib/settings/settings.h"

namespace cachewarm::agent {

// All settings of the agent. Read once at start, then passed down by value.
struct Config {
  std::string node_name;
  std::string root = "/var/lib/cachewarm";
  bundle::StoreOptions store;
  int64_t byte_limit = 0;  // maximum disk usage of all trees together; 0: disk.limit
  DiskShares disk{.limit = 10, .reserve_bytes = 12, .reserve_inodes = 6};
  std::string node_facts;  // path of the file that declares node facts; empty: all are probed
  // True if `node_facts` was set by flag or environment, that is for this node alone: the agent
  // then fails if the facts file does not exist. False if it was set in the configuration file,
  // which all nodes share: a node without the facts file is then probed.
  bool node_facts_must_exist = false;
  std::vector<std::string> driver_roots;  // directories into which a GPU driver is installed
  std::string kubeconfig;                 // empty: the service account of the agent's pod
  std::string listen_address = "0.0.0.0";
  uint16_t listen_port = 8080;
  int workers = 3;               // concurrent fetches; kPublicationWorkers more publish
  int transfer_threads = 2;      // threads of each fetch or publication
  int64_t scrub_seconds = 3600;  // seconds between two scrubs of an active tree; 0: never
  bool redis_endpoint = false;   // serve torch's Redis remote caches on a socket in each tree
  bundle::KeyFiles keys;
  std::string factor_salt_file;  // empty: the key factors of engines are not read
  bundle::Limits limits;         // a bundle that exceeds one of them is rejected
  LogLevel log_level = LogLevel::kInfo;
};

struct CommandLine {
  Config config;
  bool print_node_facts = false;     // print GPU type and CPU class of this node and exit
  std::optional<std::string> print;  // text of --help or --version: print it, then exit
};

// Returns the table of all settings. Each setting writes its value to a field of `command`, which
// must outlive the table.
settings::Table TableOf(CommandLine& command);

// Parses flags, environment and configuration file with lib/settings. The file may be shared with
// the operator: the operator's keys are accepted and ignored. Errors: INVALID_ARGUMENT names the
// setting.
absl::StatusOr<CommandLine> ParseConfig(const settings::Sources& sources);

// Returns the text of --help.
std::string HelpText();

}  // namespace cachewarm::agent
