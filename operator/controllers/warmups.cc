// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/warmups.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/gate/core/held.h"
#include "operator/observe/workload.h"
#include "operator/plan/decide.h"

namespace cachewarm::controllers {
namespace {

// Retry interval while the store does not have the operator's last write to the warmup.
constexpr Duration kStaleRetry{25};
// Maximum time that a reconcile waits for the store to have the operator's last write. After this
// time the store counts as current anyway.
constexpr Duration kStaleAtMost{5000};
// Interval at which dry runs are repeated while a workload has fewer pods than it should, because
// the API server may be rejecting its pods.
constexpr Duration kDryRunInterval{15'000};
// Time after which the answer to a dry run of a release is read.
constexpr Duration kReleaseDryRunRetry{60'000};
// Retry interval after the API server rejected requests for single nodes or pods. A rejection lasts
// until a user changes something.
constexpr Duration kRejectedRetry{30'000};
// A pod that is held this long after its deadline counts as overdue. A release takes less.
constexpr Duration kReleaseDelay{10'000};

std::string_view ResultName(const model::AdmissionDryRun& result) {
  if (result.unmodified == model::DryRunResult::kRefused) {
    return "refused_as_it_is";
  }
  switch (result.injected) {
    case model::DryRunResult::kAllowed:
      return "allowed";
    case model::DryRunResult::kRefused:
      return "refused_injected";
    case model::DryRunResult::kUnknown:
      return "unknown";
  }
  return "unknown";
}

// Returns the number of waiting nodes, summed over all bundles: a node that waits for several
// bundles counts once for each.
double NodesWaiting(const api::WarmupStatus& status) {
  double sum = 0;
  for (const api::BundleStatus& bundle : status.bundles) {
    sum += bundle.nodes_waiting;
  }
  return sum;
}

Warmups::HeldPodCounts CountHeldPods(const model::Snapshot& snapshot) {
  const Duration longest = std::chrono::seconds(snapshot.warmup.spec.gate.max_hold_seconds);
  Warmups::HeldPodCounts counts;
  for (const auto& pod : snapshot.pods) {
    if (gate::IsHeld(*pod)) {
      ++counts.held;
      counts.overdue += snapshot.now > gate::Deadline(*pod, longest) + kReleaseDelay ? 1 : 0;
    }
  }
  return counts;
}

// Returns a held pod, else any other pod of the namespace; null if all are being deleted.
std::shared_ptr<const api::Pod> PodToRelease(
    const std::vector<std::shared_ptr<const api::Pod>>& pods) {
  std::shared_ptr<const api::Pod> found;
  for (const auto& pod : pods) {
    if (!pod->meta.deleting && (found == nullptr || gate::IsHeld(*pod))) {
      found = pod;
    }
    if (found != nullptr && gate::IsHeld(*found)) {
      break;
    }
  }
  return found;
}

std::optional<Duration> Sooner(std::optional<Duration> a, std::optional<Duration> b) {
  if (!a.has_value() || !b.has_value()) {
    return a.has_value() ? a : b;
  }
  return std::min(*a, *b);
}

kube::Outcome Sooner(kube::Outcome a, const kube::Outcome& b) {
  a.requeue_after = Sooner(a.requeue_after, b.requeue_after);
  return a;
}

kube::Outcome RetryOf(const apply::ExecuteResult& executed) {
  return {.requeue_after = executed.rejected > 0 ? std::optional(kRejectedRetry) : std::nullopt};
}

// Returns the names of the builder Jobs whose end is not recorded in the status yet.
std::set<std::string> JobsOf(const api::WarmupStatus& status) {
  std::set<std::string> jobs;
  for (const api::BuilderStatus& builder : status.builders) {
    const std::string& job = api::CurrentJob(builder);
    if ((builder.finished_time == WallTime{} || builder.proof) && !job.empty()) {
      jobs.insert(job);
    }
  }
  return jobs;
}

}  // namespace

std::vector<std::string> LeftoverUids(const observe::ClusterCache& cluster,
                                      const kube::ObjectName& name, const std::string& live_uid) {
  std::vector<std::string> uids = cluster.node_cache_views.UidsOf(name.ns, name.name);
  std::erase(uids, live_uid);
  return uids;
}

absl::StatusOr<kube::Outcome> Warmups::Reconcile(const std::string& key, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const kube::ObjectName name, kube::ObjectName::Parse(key));
  const kube::CachedObjectPtr object = deps_.cluster.warmups.store().Find(name);
  const std::string uid(object == nullptr ? std::string_view() : object->uid());
  deps_.build_requests.StopOthers(name, uid);
  ForgetOthers(name, uid);
  CW_ASSIGN_OR_RETURN(const kube::Outcome cleaned_up, CleanUp(name, uid, stop));
  if (object == nullptr) {
    return cleaned_up;
  }
  const auto warmup = deps_.cluster.warmup_views.Of(object);
  if (warmup == nullptr) {
    return absl::InvalidArgumentError(
        "cannot decode the CacheWarmup; the log line \"cannot decode object\" gives the reason");
  }
  if (IsStale(*warmup)) {
    return kube::Outcome{.requeue_after = kStaleRetry};
  }
  CW_ASSIGN_OR_RETURN(const kube::Outcome advanced, Advance(*warmup, stop));
  return Sooner(advanced, cleaned_up);
}

absl::StatusOr<kube::Outcome> Warmups::Advance(const api::CacheWarmup& warmup,
                                               std::stop_token stop) {
  const Decision decision = Decide(warmup, deps_.factor_salt(stop));
  const model::Plan& plan = decision.plan;
  deps_.metrics.nodes_waiting.Set({warmup.ns, warmup.name}, NodesWaiting(plan.status));
  deps_.metrics.suspended_bundles.Set({warmup.ns, warmup.name}, plan.bundles_suspended);
  deps_.metrics.pods_held.Set({warmup.ns, warmup.name}, decision.pods.held);
  deps_.metrics.pods_overdue.Set({warmup.ns, warmup.name}, decision.pods.overdue);
  if (plan.status_changed) {
    RecordWrite(warmup);
  }
  const auto executed = deps_.executor.Execute(warmup, plan, stop);
  if (!executed.ok()) {
    ForgetWrite(warmup.uid);
    return executed.status();
  }
  deps_.build_requests.Update(warmup, plan.build_requests);
  deps_.log_reads.Update(warmup, plan.log_reads);
  deps_.job_refusals.KeepOnly(warmup.uid, JobsOf(plan.status));
  if (!plan.jobs_to_create.empty() && !deps_.job_refusals.Of(warmup.uid).empty()) {
    return kube::Outcome{.requeue_after = Duration(0)};
  }
  const kube::Outcome dry_runs =
      Sooner(RequestReleaseDryRun(warmup, decision.pod_to_release), RequestDryRun(warmup, plan));
  return Sooner(Sooner({.requeue_after = plan.requeue_after}, dry_runs), RetryOf(*executed));
}

void Warmups::CountDryRun(const model::AdmissionDryRun& result) const {
  deps_.metrics.admission_dry_runs.Add({std::string(ResultName(result))});
}

kube::Outcome Warmups::RequestDryRun(const api::CacheWarmup& warmup, const model::Plan& plan) {
  const bool lacks_pods = observe::LacksPods(deps_.cluster, warmup);
  if (plan.dry_run.has_value()) {
    deps_.dry_run_queue.Request(warmup, *plan.dry_run);
  } else if (lacks_pods) {
    deps_.dry_run_queue.RequestAgain(warmup, kDryRunInterval);
  }
  return {.requeue_after = lacks_pods ? std::optional(kDryRunInterval) : std::nullopt};
}

kube::Outcome Warmups::RequestReleaseDryRun(const api::CacheWarmup& warmup,
                                            const std::shared_ptr<const api::Pod>& pod) {
  if (warmup.spec.paused || warmup.spec.gate.mode == api::GateMode::kNever || pod == nullptr) {
    return {};
  }
  if (deps_.release_dry_runs.IsDue(*pod)) {
    deps_.dry_run_queue.RequestRelease(warmup, pod);
    return {.requeue_after = kReleaseDryRunRetry};
  }
  return {.requeue_after = deps_.release_dry_runs.ConfirmAfter(warmup.ns)};
}

absl::StatusOr<kube::Outcome> Warmups::CleanUp(const kube::ObjectName& name,
                                               const std::string& live_uid, std::stop_token stop) {
  std::vector<std::string> uids = LeftoverUids(deps_.cluster, name, live_uid);
  const bool is_gone = live_uid.empty();
  if (is_gone) {
    deps_.metrics.Forget(name.ns, name.name);
    // Execute a plan even if no NodeCache lists the deleted warmup, because pods may still be held
    // for the warmup.
    if (uids.empty()) {
      uids.emplace_back();
    }
  }
  kube::Outcome outcome;
  for (const std::string& uid : uids) {
    api::CacheWarmup gone{.ns = name.ns, .name = name.name, .uid = uid, .deleting = true};
    // If a warmup of this name is present, the pods belong to it, not to the deleted one.
    const Decision decision = Decide(gone, "", is_gone);
    CW_ASSIGN_OR_RETURN(const apply::ExecuteResult executed,
                        deps_.executor.Execute(gone, decision.plan, stop));
    outcome = Sooner(outcome, RetryOf(executed));
  }
  return outcome;
}

void Warmups::ForgetOthers(const kube::ObjectName& name, const std::string& uid) {
  std::string before;
  {
    std::lock_guard lock(mutex_);
    before = std::exchange(uids_[name], uid);
    if (uid.empty()) {
      uids_.erase(name);
    }
    if (before.empty() || before == uid) {
      return;
    }
    writes_.erase(before);
  }
  deps_.metrics.Forget(name.ns, name.name);
  deps_.dry_runs.Forget(before);
  deps_.job_refusals.KeepOnly(before, {});
  deps_.log_reads.Forget(before);
}

Warmups::Decision Warmups::Decide(const api::CacheWarmup& warmup, std::string salt, bool has_pods) {
  return planning_.Run([&] {
    model::Snapshot snapshot = Observe(warmup, std::move(salt));
    if (!has_pods) {
      snapshot.pods.clear();
    }
    return Decision{.plan = plan::Decide(snapshot),
                    .pods = CountHeldPods(snapshot),
                    .pod_to_release = PodToRelease(snapshot.pods)};
  });
}

model::Snapshot Warmups::Observe(const api::CacheWarmup& warmup, std::string salt) const {
  return observe::Observe(deps_.cluster, warmup,
                          {.now = deps_.clock.Now(),
                           .settings = deps_.settings,
                           .factor_salt = std::move(salt),
                           .dry_run = deps_.dry_runs.Last(warmup.uid),
                           .admission_missing = deps_.admission_missing(),
                           .build_requests = deps_.build_requests.States(warmup.uid),
                           .engine_reports = deps_.log_reads.Reports(warmup.uid),
                           .refused_jobs = deps_.job_refusals.Of(warmup.uid),
                           .release_refusal = deps_.release_refusals.Of(warmup.ns),
                           .agent_namespace = deps_.agent_namespace});
}

bool Warmups::IsStale(const api::CacheWarmup& warmup) {
  std::lock_guard lock(mutex_);
  const auto write = writes_.find(warmup.uid);
  if (write == writes_.end()) {
    return false;
  }
  if (write->second.on_version == warmup.resource_version &&
      deps_.clock.Monotonic() - write->second.at < kStaleAtMost) {
    return true;
  }
  writes_.erase(write);
  return false;
}

void Warmups::RecordWrite(const api::CacheWarmup& warmup) {
  std::lock_guard lock(mutex_);
  writes_[warmup.uid] = {.on_version = warmup.resource_version, .at = deps_.clock.Monotonic()};
}

void Warmups::ForgetWrite(const std::string& warmup_uid) {
  std::lock_guard lock(mutex_);
  writes_.erase(warmup_uid);
}

}  // namespace cachewarm::controllers
