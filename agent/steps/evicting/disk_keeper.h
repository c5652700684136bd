// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/steps/context.h"
#include "agent/sync/disk_space.h"
#include "agent/sync/inventory.h"
#include "lib/bundle/worker_pool.h"

namespace cachewarm::agent {

// Knows the disk usage of every tree, and empties the trash. Both take time that grows with the
// number of files, so they run on a low-priority thread of their own. Call on the sync thread.
class DiskKeeper {
 public:
  // `interval` is the time between two measurements of one tree: pods write into trees.
  DiskKeeper(const Context& context, Duration interval);

  // Takes over the results of the last pass and starts another one if there is trash or a tree is
  // to be measured. Returns true if the trash was emptied, so that its space is free now.
  bool Update(const Inventory& inventory);
  // Adds a tree of this warmup that was moved into the trash. Its usage counts until the trash is
  // empty.
  void AddTrash(const std::string& name, const std::string& warmup_uid);

  // By name of a tree: measured, else as recorded when the tree was made.
  const std::map<std::string, DiskAmount>& usage() const { return usage_; }
  // Returns the usage of all trees and of the trash.
  DiskAmount Total() const;
  const DiskAmount& trash() const { return trash_; }

 private:
  struct Pass {
    std::map<std::string, DiskAmount> usage;  // of the measured trees
    std::set<std::string> unmeasured;         // trees that could not be read
    bool emptied = false;                     // the trash had content and is empty now
    absl::Status status;                      // of emptying the trash
  };

  bool Collect();
  std::vector<std::string> DueTrees() const;
  Pass Run(const std::vector<std::string>& trees, bool empties, const std::stop_token& stop) const;

  const Context& context_;
  const Duration interval_;
  std::map<std::string, DiskAmount> usage_;
  std::map<std::string, std::string> owners_;  // by name of a tree: uid of its warmup
  std::map<std::string, MonoTime> measured_at_;
  DiskAmount trash_;
  int64_t trash_added_ = 0;  // number of AddTrash() calls
  // AddTrash() calls before the pass that last emptied the trash; -1: no pass has, and an earlier
  // process may have left trash.
  int64_t trash_emptied_ = -1;
  MonoTime retry_at_{};  // time of the next attempt, after the trash could not be emptied
  bool running_ = false;
  int64_t covered_ = 0;  // trash_added_ when the running pass was started
  std::string logged_;
  std::mutex mutex_;
  std::optional<Pass> ended_;
  bundle::WorkerPool thread_;  // last, because its job uses all members above
};

// Returns the disk usage of a tree, counting at most 1,000,000 names and 64 MiB of names in one
// directory. A larger tree counts as at least so many inodes and their blocks. A file with several
// hard links counts as its share. Returns the error if the tree cannot be read.
absl::StatusOr<DiskAmount> MeasureUsage(const fs::Dir& root, const std::string& tree);

}  // namespace cachewarm::agent
