// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/steps/context.h"

namespace cachewarm::agent {

// Takes a native file away that an engine left half-written when it was killed. It crashes every
// start that maps it, and kubelet starts a container again sooner than `renew` can put another
// tree in place (docs/design/0004-torn-files.md). One thread.
class TruncatedFiles {
 public:
  explicit TruncatedFiles(const Context& context) : context_(context) {}

  // Once a turn: looks at what was written in these trees and has been quiet for a second. Takes
  // away only what CheckWhole() calls DATA_LOSS and nobody has open for writing.
  void Sweep(const std::vector<std::string>& generations);

 private:
  void CollectWritten(const std::string& generation);
  bool CheckAndRemove(const std::string& generation, const std::string& path);

  const Context& context_;
  std::map<std::string, WallTime> read_until_;                       // by generation
  std::map<std::string, std::map<std::string, WallTime>> suspects_;  // last write by path
};

}  // namespace cachewarm::agent
