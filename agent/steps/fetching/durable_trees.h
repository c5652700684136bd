// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "agent/steps/context.h"
#include "agent/sync/inventory.h"
#include "lib/bundle/worker_pool.h"

namespace cachewarm::agent {

// Writes the trees of bundles to the disk after their activation, one at a time on a thread of its
// own, and marks them durable (tree/durable.h). Also completes the trees that an earlier agent
// process left without a mark. Trees without a link are not synced. Call on the sync thread.
class DurableTrees {
 public:
  explicit DurableTrees(const Context& context) : context_(context), thread_(1, 1) {}

  // Processes the sync that ended, if any, and starts that of another active tree. Call after links
  // were flipped, and only if RetireForeignTrees() has compared the boot.
  void Update(const Inventory& inventory);

  // Returns the generation that is being synced, which must not be evicted; empty: none.
  const std::string& running() const { return running_; }

 private:
  struct Ended {
    std::string generation;
    absl::Status status;
  };

  void Collect();
  bool IsDue(const std::string& generation, const Generation& tree);
  void Start(const std::string& generation);
  absl::Status Run(const std::string& generation, const std::stop_token& stop) const;

  const Context& context_;
  std::set<std::string> settled_;             // generations that are durable or cannot become so
  std::map<std::string, MonoTime> retry_at_;  // by generation whose sync failed
  std::string running_;                       // generation that is being synced; empty: none
  std::string logged_;
  std::mutex mutex_;
  std::optional<Ended> ended_;
  bundle::WorkerPool thread_;  // last, because its job uses all members above
};

}  // namespace cachewarm::agent
