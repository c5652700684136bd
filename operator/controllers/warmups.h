// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/kube/runtime/controller.h"
#include "operator/admission/dry_runs.h"
#include "operator/apply/build_requests.h"
#include "operator/apply/executor.h"
#include "operator/apply/job_refusals.h"
#include "operator/observe/snapshot.h"

namespace cachewarm::controllers {

// Observes, plans and applies one warmup. The key is its "ns/name"; a deleted warmup is reconciled
// until nothing of it is left. A rejection for one node or pod is retried after 30 s and does not
// affect the rest of the warmup. Between calls it keeps two things: its last write to each warmup,
// so that it does not plan again before the informer's store shows that write; and each warmup's
// uid, so that it can clear what other components hold for a warmup that was deleted or replaced.
class Warmups {
 public:
  struct Dependencies {
    const observe::ClusterCache& cluster;
    const apply::Executor& executor;
    admission::DryRuns& dry_runs;
    apply::BuildRequests& build_requests;
    apply::JobRefusals& job_refusals;
    const Clock& clock;
    const op::Metrics& metrics;
    plan::Settings settings;
    std::string agent_namespace;
    // Returns Snapshot::admission_missing. Called for every snapshot; must not block.
    std::function<std::string()> admission_missing;
  };

  // All references must outlive this object.
  explicit Warmups(Dependencies deps) : deps_(std::move(deps)) {}

  absl::StatusOr<kube::Outcome> Reconcile(const std::string& key, std::stop_token stop);

 private:
  absl::StatusOr<kube::Outcome> Advance(const api::CacheWarmup& warmup, std::stop_token stop);
  absl::StatusOr<kube::Outcome> RunDryRun(const api::CacheWarmup& warmup, const plan::Plan& plan,
                                          std::stop_token stop);
  absl::StatusOr<kube::Outcome> CleanUp(const kube::ObjectName& name, const std::string& live_uid,
                                        std::stop_token stop);
  // Clears what this and other components hold for earlier warmups of this name. `uid` is that of
  // the present warmup, "" if none exists.
  void ForgetOthers(const kube::ObjectName& name, const std::string& uid);
  // Observes and plans. Runs on one thread at a time and returns the snapshot without nodes: two
  // snapshots of 5,000 nodes would double the memory, and executing a plan takes longer than
  // planning.
  std::pair<plan::Snapshot, plan::Plan> Decide(const api::CacheWarmup& warmup);
  plan::Snapshot Observe(const api::CacheWarmup& warmup) const;
  // Returns true until the store has the operator's last write to this warmup.
  bool IsStale(const api::CacheWarmup& warmup);
  void RecordWrite(const api::CacheWarmup& warmup);
  void ForgetWrite(const std::string& warmup_uid);

  Dependencies deps_;
  struct Write {
    std::string on_version;  // resourceVersion before the write
    MonoTime at{};
  };
  std::mutex observe_mutex_;
  std::mutex mutex_;
  std::map<std::string, Write> writes_;  // by warmup uid
  // Uids of the present warmups at their last reconcile.
  std::map<kube::ObjectName, std::string> uids_;
};

// Returns the uids of earlier warmups of this name that NodeCaches still list.
std::vector<std::string> LeftoverUids(const observe::ClusterCache& cluster,
                                      const kube::ObjectName& name, const std::string& live_uid);

}  // namespace cachewarm::controllers
