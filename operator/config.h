// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/log.h"

namespace cachewarm::op {

// Everything the operator can be told. Read once at start, then passed down by value.
struct Config {
  std::string kubeconfig;  // empty: the service account of the pod we run in
  std::string listen_address = "0.0.0.0";
  uint16_t listen_port = 8080;
  std::string root = "/var/lib/cachewarm";  // of the agents: rendered into builder Jobs
  bool leader_elect = true;
  LogLevel log_level = LogLevel::kInfo;
  std::string ns = "cachewarm-system";  // where the operator runs and keeps its Lease
  std::string identity;                 // of this process in the Lease; the pod's name
  int workers = 2;                      // warmups reconciled at the same time
};

// What the command line asked for. `print` is set for --help and --version: the text to print
// before a successful exit.
struct CommandLine {
  Config config;
  std::optional<std::string> print;
};

// Where settings come from, as arguments, so that tests need no process.
struct ConfigSources {
  std::vector<std::string> arguments;  // without the program's name
  std::function<std::optional<std::string>(const std::string& name)> environment;
  // Whole content of a file; an error names the path.
  std::function<absl::StatusOr<std::string>(const std::string& path)> read_file;
  std::string host_name;  // the default identity
  std::string version;
};

// A flag beats its environment variable, which beats the file named by --config. Unknown flags and
// unknown keys are INVALID_ARGUMENT with the name and the remedy. The file may be the one of the
// agents: keys that are theirs alone are accepted and not looked at.
absl::StatusOr<CommandLine> ParseConfig(const ConfigSources& sources);

// The text of --help: one row per setting, from the same table that ParseConfig() reads.
std::string HelpText();

}  // namespace cachewarm::op
