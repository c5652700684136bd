// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cachewarm::cli {

struct ChildCommand {
  std::vector<std::string> words;                  // program (looked up in PATH) and arguments
  std::map<std::string, std::string> environment;  // all variables of the command
};

// Runs a command until it exits, with the standard streams of this process and default signal
// handling. Forwards `stop` as one SIGTERM. Returns the exit code, or 128 + the signal that killed
// the command. Errors: NOT_FOUND if the program does not exist.
absl::StatusOr<int> RunChild(const ChildCommand& command, std::stop_token stop);

}  // namespace cachewarm::cli
