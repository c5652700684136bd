// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
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

  // Starts a fetch. Does nothing if this fetch is already running, or if fetches use all worker
  // threads but kPublicationWorkers; a later iteration then tries again. Adds the fetch to
  // `history` immediately: otherwise the next plan of the same iteration would discard its staging
  // tree.
  void Start(const Fetch& step, const std::shared_ptr<const caches::CacheTable>& table,
             const DiskLimits& disk, History& history);

  // Stops the running fetches of these generations. They are still running until Collect().
  void Cancel(const std::set<std::string>& generations);

  // Processes the fetches that ended since the last call: records failures in `history` and removes
  // the ended fetches from `history.fetching`. Returns true if a generation was completed.
  bool Collect(History& history);

  // Returns the disk space that all running fetches are expected to use.
  DiskAmount Reserved() const;

  // Returns the trees from which running fetches reuse files.
  const std::set<std::string>& sources() const { return sources_; }

  // Returns the progress of the running fetches by bundle.
  std::map<Digest, FetchProgress> Progress() const;

 private:
  struct Ended {
    Fetch step;
    std::variant<Fetched, FetchFault> outcome;
  };

  void RecordOutcome(const Ended& ended, History& history);
  void RecordFault(const Fetch& step, const FetchFault& fault, History& history);

  // FetchJob::reserve. Called on a worker thread.
  absl::Status Reserve(const std::string& generation, const DiskAmount& need,
                       const std::function<absl::Status(const DiskAmount& others)>& check);

  const Context& context_;
  std::map<std::string, Fetch> running_;          // by generation
  std::map<std::string, std::stop_source> stop_;  // of the running fetches, by generation
  std::set<std::string> sources_;
  mutable std::mutex mutex_;
  struct Reservation {
    // The packed bytes until the fetch has read the manifests, then the disk usage of its tree.
    DiskAmount amount;
    DiskAmount completed_before;  // completed_ when the disk limits of the fetch were measured
  };
  std::map<std::string, Reservation> reserved_;  // by generation of a running fetch
  DiskAmount completed_;                         // sum of the reservations of ended fetches
  std::vector<Ended> ended_;
  std::map<std::string, std::map<Digest, FetchProgress>> progress_;  // by generation and bundle
};

}  // namespace cachewarm::agent
