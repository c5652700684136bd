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

// Records of bundles (.state/quarantine) and trees (.state/damaged) that this node must not use.
// They are on disk so that a restarted agent does not use them either. Call on one thread at a
// time.
namespace cachewarm::agent {

struct QuarantinedBundle {
  BundleName name;
  std::string reason;  // one of the reasons in lib/api/reasons.h
  std::string message;
  int failures = 0;
  WallTime at{};                  // time of the last failure
  std::optional<WallTime> until;  // time of the next retry; none: never
  // Version of the agent, limits, GPU type and CPU class at the time of the failure. The record is
  // ignored if they change, because the bundle may then be accepted.
  std::string criteria;
  friend bool operator==(const QuarantinedBundle&, const QuarantinedBundle&) = default;
};

absl::Status WriteQuarantinedBundle(const fs::Dir& root, const QuarantinedBundle& bundle);
// Reads all records. Removes records that cannot be read; their bundles are fetched once more.
std::vector<QuarantinedBundle> ReadQuarantinedBundles(const fs::Dir& root);
absl::Status RemoveQuarantinedBundle(const fs::Dir& root, const BundleName& name);

// Records that `generation` is damaged. After the call no link is flipped to it.
absl::Status WriteDamagedTree(const fs::Dir& root, const std::string& generation,
                              const DamagedTree& tree);
bool IsDamagedTree(const fs::Dir& root, const std::string& generation);
// Reads all records. A tree whose record cannot be read counts as damaged too.
absl::StatusOr<std::map<std::string, DamagedTree>> ReadDamagedTrees(const fs::Dir& root);
absl::Status RemoveDamagedTree(const fs::Dir& root, const std::string& generation);

}  // namespace cachewarm::agent
