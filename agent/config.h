// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/log.h"
#include "lib/bundle/policy.h"
#include "lib/bundle/signature/keys.h"
#include "lib/bundle/store/open.h"
#include "lib/settings/settings.h"

namespace cachewarm::agent {

// Everything the agent can be told. Read once at start, then passed down by value.
struct Config {
  std::string node_name;
  std::string root = "/var/lib/cachewarm";
  bundle::StoreOptions store;
  int64_t byte_limit = 0;              // of all generations; 0: none
  std::string node_facts;              // file; empty: everything is probed
  bool node_facts_must_exist = false;  // named for this process, not for all nodes by the file
  std::string kubeconfig;              // empty: the service account of the pod we run in
  std::string listen_address = "0.0.0.0";
  uint16_t listen_port = 8080;
  int workers = 3;               // fetches and publications at the same time
  int transfer_threads = 2;      // of each of them
  int64_t scrub_seconds = 3600;  // between two passes over an active tree; 0: never
  bundle::KeyFiles keys;
  bundle::Limits limits;  // of each bundle
  LogLevel log_level = LogLevel::kInfo;
};

struct CommandLine {
  Config config;
  bool print_node_facts = false;     // print what this node is and exit
  std::optional<std::string> print;  // --help, --version: text to print before a successful exit
};

// As lib/settings reads them. The file may be the one that the operator reads too: its keys are
// accepted and not looked at.
absl::StatusOr<CommandLine> ParseConfig(const settings::Sources& sources);

// The text of --help.
std::string HelpText();

}  // namespace cachewarm::agent
