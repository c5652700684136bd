// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "agent/steps/context.h"
#include "agent/steps/fetching/fetch_generation.h"
#include "agent/sync/history.h"
#include "agent/sync/report.h"

namespace cachewarm::agent {

// The running fetches, each on a worker thread. Call on the sync thread.
class Fetches {
 public:
  explicit Fetches(const Context& context) : context_(context) {}

  // Starts a fetch. Does nothing if this fetch is already running, or if all worker threads are
  // busy; a later iteration then tries again. Adds the fetch to `history` immediately: otherwise
  // the next plan of the same iteration would discard its staging tree.
  void Start(const Fetch& step, const std::shared_ptr<const caches::CacheTable>& table,
             const DiskLimits& disk, History& history);

  // Processes the fetches that ended since the last call: records failures in `history` and removes
  // the ended fetches from `history.fetching`. Returns true if a generation was completed.
  bool Collect(History& history);

  // Returns the expected bytes of all running fetches.
  int64_t RunningBytes() const;

  // Returns the progress of the running fetches by bundle.
  std::map<Digest, FetchProgress> Progress() const;

 private:
  struct Ended {
    Fetch step;
    std::variant<Fetched, FetchFault> outcome;
  };

  void RecordOutcome(const Ended& ended, History& history);
  void RecordFault(const Fetch& step, const FetchFault& fault, History& history);

  const Context& context_;
  std::map<std::string, int64_t> running_;  // by generation: expected bytes
  mutable std::mutex mutex_;
  std::vector<Ended> ended_;
  std::map<std::string, std::map<Digest, FetchProgress>> progress_;  // by generation and bundle
};

}  // namespace cachewarm::agent
