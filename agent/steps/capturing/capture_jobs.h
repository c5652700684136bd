// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agent/steps/capturing/publication.h"
#include "agent/steps/capturing/settle.h"
#include "agent/steps/context.h"
#include "agent/steps/late_units.h"
#include "agent/sync/history.h"
#include "agent/sync/inventory.h"

namespace cachewarm::agent {

// A capture request, with the warmup that the builder belongs to.
struct CaptureOrder {
  api::CaptureRequest request;
  std::string ns;    // namespace of the warmup; empty if the spec does not list the warmup
  std::string name;  // name of the warmup
  std::vector<Digest> bundles;  // bundles of the warmup that this node should have
  std::shared_ptr<const caches::CacheTable> table;
  HarvestSource harvest;  // if the request is a harvest that can advance (Captures::CanAdvance())
};

// Executes the capture requests for this node. Waits until no file in the builder's tree has
// changed for `settle_seconds` (it has settled), packs and publishes the tree on a worker thread,
// and keeps the result on disk until the request is removed. A failure is retried with backoff as
// long as the request exists; a harvest is only retried if that may help. The state stays Packing
// during the first retries, and becomes Failed (PublishFailed) if the failure persists or a retry
// cannot help. Call on the sync thread.
class Captures {
 public:
  // Reads the results of an earlier process from the disk.
  explicit Captures(const Context& context);

  // Advances every request by one step; forgets captures without a request.
  void Poll(const std::vector<CaptureOrder>& orders);

  std::vector<api::CaptureStatus> Statuses() const;
  // Returns true if Poll() would advance the request now: it has no result, is not being packed,
  // and waits for no retry. A harvest without CaptureOrder::harvest stays as it is.
  bool CanAdvance(const std::string& id) const;
  // Returns true while a request has no result. Poll() must then be called every second.
  bool IsWaiting() const;

 private:
  struct Capture {
    api::CaptureStatus status;
    Settle settle;
    // The last sample of the tree `sampled`, which was listed at `sampled_at`.
    SettleSample sample;
    std::string sampled;
    WallTime sampled_at{};
    FailureState failure;
    bool running = false;
    bool done = false;
    int changed = 0;  // number of times that the tree changed while it was packed
    MonoTime settled_at{};
  };
  struct Ended {
    std::string id;
    std::string generation;
    api::CaptureRequest request;
    std::shared_ptr<const caches::CacheTable> table;
    absl::StatusOr<Published> outcome;
  };

  void Forget(const std::vector<CaptureOrder>& orders);
  void Advance(const CaptureOrder& order, Capture& capture);
  // Checks whether a harvest may go on, and records why it may not.
  static bool MayHarvest(const CaptureOrder& order, Capture& capture);
  // Records that the capture can never succeed.
  static void Refuse(Capture& capture, std::string_view reason, std::string message);
  // Records that the tree of the capture can never be published.
  void RefuseTree(Capture& capture, bool is_harvest, std::string message);
  // Counts a failure of the capture, and logs it if `is_new`.
  void CountFailure(const Capture& capture, bool is_new) const;
  // Returns the id of the tree that the builder's container mounted, or that is harvested; empty if
  // unknown.
  std::string FindGeneration(const CaptureOrder& order) const;
  std::string MostUsed(const std::vector<std::string>& generations,
                       const CaptureOrder& order) const;
  // Lists the tree if files in it were used since the last sample, or if it is `forced`; else
  // returns that sample.
  absl::StatusOr<SettleSample> Sample(const CaptureOrder& order, Capture& capture,
                                      const std::string& generation, bool forced) const;
  void Start(const CaptureOrder& order, Capture& capture, const std::string& generation);
  void Collect();
  void RecordOutcome(const Ended& ended, Capture& capture);
  void RecordError(const absl::Status& status, bool is_harvest, Capture& capture);
  void RecordPublished(const Ended& ended, Capture& capture);
  static void Wait(Capture& capture, std::string_view reason, std::string message);

  const Context& context_;
  std::map<std::string, Capture> captures_;
  std::mutex mutex_;
  std::vector<Ended> ended_;
};

}  // namespace cachewarm::agent
