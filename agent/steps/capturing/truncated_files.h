// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/steps/context.h"

namespace cachewarm::agent {

// Removes native files that an engine left truncated when it was killed. Such a file crashes every
// start that maps it, and kubelet restarts a container before the operator can request a fresh tree
// (`renew`; docs/design/0004-truncated-files.md). Call on one thread.
class TruncatedFiles {
 public:
  explicit TruncatedFiles(const Context& context) : context_(context) {}

  // Checks, in these trees, each native file that was written since its last check and has now been
  // unchanged for a second. Removes a file only if caches::CheckWhole() returns DATA_LOSS for it
  // and no process has it open for writing. Call once per iteration.
  void Sweep(const std::vector<std::string>& generations);

 private:
  void CollectWritten(const std::string& generation);
  bool CheckAndRemove(const std::string& generation, const std::string& path);

  const Context& context_;
  std::map<std::string, WallTime> read_until_;  // by generation: time up to which events were read
  // Files that are still to be checked, by generation and path: time of the last write.
  std::map<std::string, std::map<std::string, WallTime>> suspects_;
};

}  // namespace cachewarm::agent
