// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "agent/steps/context.h"
#include "agent/steps/scrubbing/scrub_tree.h"
#include "agent/steps/tables.h"
#include "agent/sync/history.h"
#include "agent/sync/inventory.h"
#include "lib/bundle/store/limited/bandwidth.h"
#include "lib/bundle/worker_pool.h"

namespace cachewarm::agent {

// Compares the active trees with their bundles (scrubs them) periodically, one at a time, on its
// own low-priority thread. Damage is recorded on disk, and the next plan replaces the tree
// (sync/plan.h). Call on the sync thread.
class Scrub {
 public:
  // `interval` is the time between two passes over one tree, varied at random by up to a tenth;
  // zero means never. The first pass over a tree reads all files, so it begins only after some
  // minutes.
  Scrub(const Context& context, const Tables& tables, Duration interval);

  // Processes the pass that ended, if any: records damage, and quarantines a bundle whose entry
  // list does not match its contents. Call before a plan is made.
  void Collect(History& history);
  // Starts a pass over an active tree of `inventory` if one is due.
  void Update(const Inventory& inventory);

 private:
  struct Ended {
    Mount mount;
    std::string generation;
    absl::StatusOr<Scrubbed> outcome;
  };

  std::map<std::string, Mount> ActiveTrees(const Inventory& inventory) const;
  Duration FirstWait(const std::string& generation) const;
  void Start(const std::string& generation, const Mount& mount, const Inventory& inventory);
  void RecordOutcome(const Ended& ended, History& history);
  void RecordDamage(const Ended& ended, const Scrubbed& scrubbed, History& history);
  void WritePending();

  const Context& context_;
  const Tables& tables_;
  const Duration interval_;
  bundle::Bandwidth bandwidth_;
  std::map<std::string, MonoTime> due_;  // by generation: time of the next pass
  std::string running_;                  // generation that is being scrubbed; empty: none
  std::map<std::string, DamagedTree> to_write_;
  std::map<std::string, std::string> logged_;  // errors already logged, by generation
  std::mutex mutex_;
  std::optional<Ended> ended_;
  bundle::WorkerPool thread_;  // last, because its job uses all members above
};

}  // namespace cachewarm::agent
