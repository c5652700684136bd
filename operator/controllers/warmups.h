// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/kube/runtime/controller.h"
#include "lib/kube/runtime/namespace_lanes.h"
#include "operator/apply/build_requests.h"
#include "operator/apply/executor.h"
#include "operator/apply/job_refusals.h"
#include "operator/apply/log_reads.h"
#include "operator/apply/release_refusals.h"
#include "operator/controllers/planning_thread.h"
#include "operator/dry_run/dry_run_queue.h"
#include "operator/dry_run/dry_runs.h"
#include "operator/dry_run/release_dry_runs.h"
#include "operator/observe/observe_warmup.h"

namespace cachewarm::controllers {

// Warmups that are reconciled at once: `workers` of them, and in threads of their own those of
// namespaces whose webhooks delay the operator's writes. All plans are made on one other thread.
inline kube::Lanes WarmupLanes(int workers) {
  return {.usual = static_cast<size_t>(workers), .slow = 16};
}

// Reconciles CacheWarmups: observes, plans and applies one warmup per call. The work queue key is
// "ns/name". Reconciles a deleted warmup until no NodeCache lists it any more. If the API server
// rejects a request for one node or pod, continues with the rest of the warmup and retries later.
// Remembers the last write to each warmup, so that it does not plan again before the informer's
// store has that write. Remembers the uid of each warmup, so that it can clear the state that other
// components keep for a warmup that was deleted or replaced.
class Warmups {
 public:
  struct Dependencies {
    const observe::ClusterCache& cluster;
    const apply::Executor& executor;
    dry_run::DryRuns& dry_runs;
    dry_run::DryRunQueue& dry_run_queue;
    const dry_run::ReleaseDryRuns& release_dry_runs;
    apply::BuildRequests& build_requests;
    apply::LogReads& log_reads;
    apply::JobRefusals& job_refusals;
    const apply::ReleaseRefusals& release_refusals;
    const Clock& clock;
    const op::Metrics& metrics;
    model::Settings settings;
    std::string agent_namespace;
    // Returns Snapshot::factor_salt. May send a request.
    std::function<std::string(std::stop_token)> factor_salt;
    // Returns Snapshot::admission_missing. Called for every snapshot; must not block.
    std::function<std::string()> admission_missing;
  };

  struct HeldPodCounts {
    int held = 0;
    int overdue = 0;  // still held some seconds after their deadline
  };

  // All references must outlive this object.
  explicit Warmups(Dependencies deps) : deps_(std::move(deps)) {}

  absl::StatusOr<kube::Outcome> Reconcile(const std::string& key, std::stop_token stop);

  // Counts a result of `dry_run_queue`.
  void CountDryRun(const model::AdmissionDryRun& result) const;

 private:
  // The results of planning. Does not hold the snapshot, whose nodes and decoded pods would stay in
  // memory while the plan is executed, which takes longer than planning.
  struct Decision {
    model::Plan plan;
    HeldPodCounts pods;
    std::shared_ptr<const api::Pod> pod_to_release;  // null: no pod for a dry run of its release
  };

  absl::StatusOr<kube::Outcome> Advance(const api::CacheWarmup& warmup, std::stop_token stop);
  // Queues the dry run that the plan requests, or a repetition while the workload lacks pods.
  kube::Outcome RequestDryRun(const api::CacheWarmup& warmup, const model::Plan& plan);
  // Queues a dry run of the release of `pod` if one is due and the warmup may hold pods. `pod` may
  // be null.
  kube::Outcome RequestReleaseDryRun(const api::CacheWarmup& warmup,
                                     const std::shared_ptr<const api::Pod>& pod);
  absl::StatusOr<kube::Outcome> CleanUp(const kube::ObjectName& name, const std::string& live_uid,
                                        std::stop_token stop);
  // Clears the state that this and other components keep for earlier warmups of this name. `uid` is
  // the uid of the present warmup; "" if none exists.
  void ForgetOthers(const kube::ObjectName& name, const std::string& uid);
  // Observes and plans on the planning thread. If `has_pods` is false, plans as if no pod existed.
  Decision Decide(const api::CacheWarmup& warmup, std::string salt, bool has_pods = true);
  model::Snapshot Observe(const api::CacheWarmup& warmup, std::string salt) const;
  // Returns true until the store has the operator's last write to this warmup.
  bool IsStale(const api::CacheWarmup& warmup);
  void RecordWrite(const api::CacheWarmup& warmup);
  void ForgetWrite(const std::string& warmup_uid);

  Dependencies deps_;
  struct Write {
    std::string on_version;  // resourceVersion before the write
    MonoTime at{};
  };
  PlanningThread planning_;
  std::mutex mutex_;
  std::map<std::string, Write> writes_;  // by warmup uid
  // Uid of each present warmup at its last reconcile.
  std::map<kube::ObjectName, std::string> uids_;
};

// Returns the uids of earlier warmups of this name that NodeCaches still list.
std::vector<std::string> LeftoverUids(const observe::ClusterCache& cluster,
                                      const kube::ObjectName& name, const std::string& live_uid);

}  // namespace cachewarm::controllers
