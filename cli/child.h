// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cachewarm::cli {

struct ChildCommand {
  std::vector<std::string> words;  // the program first, looked up in PATH
  std::map<std::string, std::string> environment;
};

// Runs a command to its end with our standard streams and all signals as they were before us. A
// requested `stop` is passed on as SIGTERM, once. Returns its exit code, or 128 + the signal that
// killed it. NOT_FOUND when there is no such program.
absl::StatusOr<int> RunChild(const ChildCommand& command, std::stop_token stop);

}  // namespace cachewarm::cli
