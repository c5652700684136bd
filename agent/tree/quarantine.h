// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/sync/history.h"
#include "agent/sync/inventory.h"
#include "lib/base/clock.h"
#include "lib/fs/dir.h"

// What this node must not use, written down so that no restart tries it again: bundles below
// .state/quarantine, trees below .state/damaged. One thread at a time.
namespace cachewarm::agent {

struct QuarantinedBundle {
  BundleName name;
  std::string reason;  // of lib/api/reasons.h
  std::string message;
  int failures = 0;
  WallTime at{};                  // of the last failure
  std::optional<WallTime> until;  // of the next try; none: never again
  // Who refused it: another version of the agent, other limits, another kind of node look again.
  std::string criteria;
  friend bool operator==(const QuarantinedBundle&, const QuarantinedBundle&) = default;
};

absl::Status WriteQuarantinedBundle(const fs::Dir& root, const QuarantinedBundle& bundle);
// A record that cannot be read is removed: the bundle is then looked at once more.
std::vector<QuarantinedBundle> ReadQuarantinedBundles(const fs::Dir& root);
absl::Status RemoveQuarantinedBundle(const fs::Dir& root, const BundleName& name);

// From when this returns on, no link is ever flipped to `generation`.
absl::Status WriteDamagedTree(const fs::Dir& root, const std::string& generation,
                              const DamagedTree& tree);
bool IsDamagedTree(const fs::Dir& root, const std::string& generation);
// Also those whose record cannot be read: that it is there is what counts.
absl::StatusOr<std::map<std::string, DamagedTree>> ReadDamagedTrees(const fs::Dir& root);
absl::Status RemoveDamagedTree(const fs::Dir& root, const std::string& generation);

}  // namespace cachewarm::agent
