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

// observe → plan → apply for one warmup. The key is its "ns/name"; a warmup that is gone is looked
// at too, until nothing of it is left. What one node or one pod refuses for good is tried again
// after 30 s, and costs the warmup nothing else. Holds no state but what keeps it from planning
// twice on the same stale store, and the uids by which others remember its warmups.
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
    // As Snapshot::admission_missing; asked at every look, must not block.
    std::function<std::string()> admission_missing;
  };

  // Everything must outlive it.
  explicit Warmups(Dependencies deps) : deps_(std::move(deps)) {}

  absl::StatusOr<kube::Outcome> Reconcile(const std::string& key, std::stop_token stop);

 private:
  absl::StatusOr<kube::Outcome> Advance(const api::CacheWarmup& warmup, std::stop_token stop);
  absl::StatusOr<kube::Outcome> RunDryRun(const api::CacheWarmup& warmup, const plan::Plan& plan,
                                          std::stop_token stop);
  absl::StatusOr<kube::Outcome> CleanUp(const kube::ObjectName& name, const std::string& live_uid,
                                        std::stop_token stop);
  // Earlier warmups of this name; `uid` is that of the live one, "" when there is none.
  void ForgetOthers(const kube::ObjectName& name, const std::string& uid);
  // One at a time, and without the nodes in what it gives: two looks at 5,000 nodes are twice the
  // memory, and to carry out a plan takes longer than to make it.
  std::pair<plan::Snapshot, plan::Plan> Decide(const api::CacheWarmup& warmup);
  plan::Snapshot Observe(const api::CacheWarmup& warmup) const;
  // True while the store has not seen our last write to this warmup.
  bool IsStale(const api::CacheWarmup& warmup);
  void RecordWrite(const api::CacheWarmup& warmup);
  void ForgetWrite(const std::string& warmup_uid);

  Dependencies deps_;
  struct Write {
    std::string on_version;  // resourceVersion that the write was based on
    MonoTime at{};
  };
  std::mutex observe_mutex_;
  std::mutex mutex_;
  std::map<std::string, Write> writes_;           // by warmup uid
  std::map<kube::ObjectName, std::string> uids_;  // of live warmups, as they were looked at last
};

// uids of warmups of this name, other than `live_uid`, that NodeCaches still have entries of.
std::vector<std::string> LeftoverUids(const observe::ClusterCache& cluster,
                                      const kube::ObjectName& name, const std::string& live_uid);

}  // namespace cachewarm::controllers
