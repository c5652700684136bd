// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/kube/runtime/controller.h"
#include "lib/kube/runtime/work_queue.h"
#include "operator/dry_run/dry_runs.h"
#include "operator/dry_run/release_dry_runs.h"

namespace cachewarm::dry_run {

// Dry runs that run at once. A dry run occupies a thread for as long as a webhook of the namespace
// takes to answer, at most kDryRunLimit for each of its requests. An idle thread costs 10 kB.
inline constexpr kube::Lanes kDryRunLanes{.usual = 4, .slow = 16};

// Runs the dry runs of all warmups apart from the threads that plan. One dry run of a warmup runs
// at a time; a newer request replaces one that waits. The release of a pod is tried before the
// creation of the injected pod, so that the first plan that injects knows both answers.
// Thread-safe.
class DryRunQueue {
 public:
  struct Dependencies {
    DryRuns& dry_runs;
    ReleaseDryRuns& releases;
    kube::WorkQueue& queue;
    const Clock& clock;
    // Called on the thread of the dry run with the warmup's "ns/name".
    std::function<void(const std::string& warmup, const model::AdmissionDryRun& result)> on_result;
  };

  // All references must outlive this object.
  explicit DryRunQueue(Dependencies deps) : deps_(std::move(deps)) {}

  // Queues a dry run.
  void Request(const api::CacheWarmup& warmup, const model::DryRunRequest& request);
  // Queues a repetition of the last dry run of the warmup, see DryRuns::Rerun().
  void RequestAgain(const api::CacheWarmup& warmup, Duration interval);

  // Queues a dry run of the release of `pod`, a pod of the warmup.
  void RequestRelease(const api::CacheWarmup& warmup, std::shared_ptr<const api::Pod> pod);

  // Runs the queued dry run of the warmup `key` ("ns/name"). Call for the keys of the queue.
  absl::StatusOr<kube::Outcome> Reconcile(const std::string& key, std::stop_token stop);

 private:
  struct Pending {
    std::string ns;
    std::string warmup_uid;
    WallTime requested_time{};
    std::optional<model::DryRunRequest> request;
    std::optional<Duration> repeat_interval;  // repeat the last request; unused with `request`
    std::shared_ptr<const api::Pod> release;  // null: no dry run of a release
  };

  // Calls `change` with the pending entry of the warmup, and queues the warmup.
  void Update(const api::CacheWarmup& warmup, const std::function<void(Pending&)>& change);
  // True if the last dry run answered the request after it was made.
  bool IsAnswered(const Pending& pending) const;

  Dependencies deps_;
  std::mutex mutex_;
  std::map<std::string, Pending> pending_;  // by "ns/name" of the warmup
};

}  // namespace cachewarm::dry_run
