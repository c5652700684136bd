// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>

#include "agent/facts_watcher.h"

namespace cachewarm::agent {

// Probes of a node whose facts stay the same.
inline NodeProbes ProbesReturning(const fingerprint::NodeFacts& facts) {
  return {.all = [facts](std::stop_token) { return absl::StatusOr<fingerprint::NodeFacts>(facts); },
          .without_gpu = [facts] { return absl::StatusOr<fingerprint::NodeFacts>(facts); },
          .driver_state = [] { return std::string(); }};
}

}  // namespace cachewarm::agent
