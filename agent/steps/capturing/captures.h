// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agent/steps/capturing/publish.h"
#include "agent/steps/capturing/settle.h"
#include "agent/steps/context.h"
#include "agent/sync/history.h"
#include "agent/sync/inventory.h"

namespace cachewarm::agent {

// A capture request with what the agent knows about its warmup.
struct CaptureOrder {
  api::CaptureRequest request;
  std::string ns;               // of the warmup; empty when the spec does not name it
  std::string name;             // of the warmup
  std::vector<Digest> bundles;  // of the warmup, that this node should have
  std::shared_ptr<const caches::CacheTable> table;
};

// The captures of this node: waits until a builder's tree has settled, publishes it on a worker,
// keeps the answer on the disk until the request is gone. Whatever fails is tried again for as long
// as it is asked for, with backoff: Packing with a reason at first, Failed with PublishFailed when
// it lasts or when waiting alone will not help. Called by the sync thread only.
class Captures {
 public:
  // Answers of an earlier process are read from the disk.
  explicit Captures(const Context& context);

  // One observed at every request; forgets those that are no longer asked for.
  void Poll(const std::vector<CaptureOrder>& orders);

  std::vector<api::CaptureStatus> Statuses() const;
  // True while some request is not answered: poll every second.
  bool IsWaiting() const;

 private:
  struct Capture {
    api::CaptureStatus status;
    Settle settle;
    FailureState failure;
    bool running = false;
    bool done = false;
    int changed = 0;  // times that the tree changed under the packer
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
  // The tree that the builder's container mounted; empty when it cannot be told.
  std::string FindGeneration(const CaptureOrder& order) const;
  std::string MostUsed(const std::vector<std::string>& generations,
                       const CaptureOrder& order) const;
  void Start(const CaptureOrder& order, Capture& capture, const std::string& generation);
  void Collect();
  void RecordOutcome(const Ended& ended, Capture& capture);
  void RecordError(const absl::Status& status, Capture& capture);
  void RecordPublished(const Ended& ended, Capture& capture);
  static void Wait(Capture& capture, std::string_view reason, std::string message);

  const Context& context_;
  std::map<std::string, Capture> captures_;
  std::mutex mutex_;
  std::vector<Ended> ended_;
};

}  // namespace cachewarm::agent
