// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "agent/steps/context.h"
#include "agent/steps/scrubbing/scrub_tree.h"
#include "agent/steps/tables.h"
#include "agent/steps/workers.h"
#include "agent/sync/history.h"
#include "agent/sync/inventory.h"
#include "lib/bundle/store/limited/bandwidth.h"

namespace cachewarm::agent {

// Looks at the active trees again and again, one at a time, on a thread of its own that yields to
// all others. A damaged tree is written down, and the next plan puts a fresh one in its place
// (sync/plan.h). Called by the sync thread only.
class Scrub {
 public:
  // `interval` between two passes over one tree, a tenth more or less; zero: never. The first pass
  // over a tree comes after minutes: it reads all of it.
  Scrub(const Context& context, const Tables& tables, Duration interval);

  // Takes in the pass that ended: writes damage down and puts a bundle whose entry list lies into
  // quarantine. Before a plan is made.
  void Collect(History& history);
  // Starts the next pass that is due over an active tree of `inventory`.
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
  std::map<std::string, MonoTime> due_;  // by generation
  std::string running_;                  // generation; empty: none
  std::map<std::string, DamagedTree> to_write_;
  std::map<std::string, std::string> logged_;  // errors in the log already, by generation
  std::mutex mutex_;
  std::optional<Ended> ended_;
  Workers thread_;  // last: its job uses the rest
};

}  // namespace cachewarm::agent
