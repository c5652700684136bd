// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "agent/steps/context.h"
#include "agent/steps/fetching/fetch.h"
#include "agent/sync/history.h"
#include "agent/sync/report.h"

namespace cachewarm::agent {

// The fetches under way, each on a worker. Called by the sync thread only.
class Fetches {
 public:
  explicit Fetches(const Context& context) : context_(context) {}

  // Starts one unless it runs already or as many run as there are workers (then the next turn,
  // which comes when one of them ends, tries again). `history` knows at once that it runs: the plan
  // of the same turn would discard its staging tree.
  void Start(const Fetch& step, const std::shared_ptr<const caches::CacheTable>& table,
             const DiskLimits& disk, History& history);

  // Takes in what ended since the last call: `history` learns of setbacks and of what runs.
  // True when a generation was completed.
  bool Collect(History& history);

  // What the running fetches were said to take.
  int64_t RunningBytes() const;

  // Of the running fetches, by bundle.
  std::map<Digest, FetchProgress> Progress() const;

 private:
  struct Ended {
    Fetch step;
    std::variant<Fetched, FetchFault> outcome;
  };

  void RecordOutcome(const Ended& ended, History& history);
  void RecordFault(const Fetch& step, const FetchFault& fault, History& history);

  const Context& context_;
  std::map<std::string, int64_t> running_;  // bytes by generation
  mutable std::mutex mutex_;
  std::vector<Ended> ended_;
  std::map<std::string, std::map<Digest, FetchProgress>> progress_;  // by generation
};

}  // namespace cachewarm::agent
