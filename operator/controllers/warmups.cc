// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/warmups.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "operator/observe/workload.h"
#include "operator/plan/plan.h"

namespace cachewarm::controllers {
namespace {

// How soon to look again when the store is behind our own write, and for how long to believe that.
constexpr Duration kStaleRetry{25};
constexpr Duration kStaleAtMost{5000};
// A workload that lacks pods is rehearsed again this often: its creates may be refused.
constexpr Duration kRepeatRehearsal{15'000};
// What a node or a pod refuses stands in the way until somebody changes something there.
constexpr Duration kRefusedAgain{30'000};

std::string_view VerdictName(const plan::Rehearsal& verdict) {
  if (verdict.as_is == plan::Answer::kRefused) {
    return "refused_as_it_is";
  }
  switch (verdict.injected) {
    case plan::Answer::kAllowed:
      return "allowed";
    case plan::Answer::kRefused:
      return "refused_injected";
    case plan::Answer::kUnknown:
      return "unknown";
  }
  return "unknown";
}

// Most nodes wait for one bundle; one that waits for more counts for each.
double NodesWaiting(const api::WarmupStatus& status) {
  double sum = 0;
  for (const api::BundleStatus& bundle : status.bundles) {
    sum += bundle.nodes_waiting;
  }
  return sum;
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

kube::Outcome RetryOf(const apply::Carried& carried) {
  return {.requeue_after = carried.refused > 0 ? std::optional(kRefusedAgain) : std::nullopt};
}

// The Jobs whose end the status still waits for.
std::set<std::string> JobsOf(const api::WarmupStatus& status) {
  std::set<std::string> jobs;
  for (const api::BuilderStatus& builder : status.builders) {
    if (builder.finished_time == WallTime{} && !builder.job.empty()) {
      jobs.insert(builder.job);
    }
  }
  return jobs;
}

}  // namespace

std::vector<std::string> LeftBehind(const observe::World& world, const kube::ObjectName& name,
                                    const std::string& live_uid) {
  std::vector<std::string> uids = world.node_cache_views.UidsOf(name.ns, name.name);
  std::erase(uids, live_uid);
  return uids;
}

absl::StatusOr<kube::Outcome> Warmups::Reconcile(const std::string& key, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const kube::ObjectName name, kube::ObjectName::Parse(key));
  const kube::Kept object = means_.world.warmups.store().Find(name);
  const std::string uid(object == nullptr ? std::string_view() : object->uid());
  means_.build_requests.EndOthers(name, uid);
  ForgetOthers(name, uid);
  CW_ASSIGN_OR_RETURN(const kube::Outcome withdrawn, Withdraw(name, uid, stop));
  if (object == nullptr) {
    return withdrawn;
  }
  const auto warmup = means_.world.warmup_views.Of(object);
  if (warmup == nullptr) {
    return absl::InvalidArgumentError("the CacheWarmup is not understood; see the log");
  }
  if (IsStale(*warmup)) {
    return kube::Outcome{.requeue_after = kStaleRetry};
  }
  CW_ASSIGN_OR_RETURN(const kube::Outcome advanced, Advance(*warmup, stop));
  return Sooner(advanced, withdrawn);
}

absl::StatusOr<kube::Outcome> Warmups::Advance(const api::CacheWarmup& warmup,
                                               std::stop_token stop) {
  const auto [snapshot, plan] = Decide(warmup);
  means_.metrics.nodes_waiting.Set({warmup.ns, warmup.name}, NodesWaiting(plan.status));
  if (plan.status_changed) {
    NoteWrite(warmup);
  }
  const auto carried = means_.executor.Execute(snapshot, plan, stop);
  if (!carried.ok()) {
    ForgetWrite(warmup.uid);
    return carried.status();
  }
  means_.build_requests.Follow(warmup, plan.build_requests);
  means_.job_refusals.KeepOnly(warmup.uid, JobsOf(plan.status));
  if (!plan.jobs_to_create.empty() && !means_.job_refusals.Of(warmup.uid).empty()) {
    return kube::Outcome{.requeue_after = Duration(0)};
  }
  CW_ASSIGN_OR_RETURN(const kube::Outcome rehearsed, Rehearse(warmup, plan, stop));
  return Sooner(Sooner({.requeue_after = plan.requeue_after}, rehearsed), RetryOf(*carried));
}

absl::StatusOr<kube::Outcome> Warmups::Rehearse(const api::CacheWarmup& warmup,
                                                const plan::Plan& plan, std::stop_token stop) {
  std::optional<plan::Rehearsal> verdict;
  const bool lacks_pods = observe::LacksPods(means_.world, warmup);
  if (plan.rehearsal.has_value()) {
    verdict = means_.rehearsals.Rehearse(warmup.uid, warmup.ns, *plan.rehearsal, stop);
  } else if (lacks_pods) {
    verdict = means_.rehearsals.Repeat(warmup.uid, warmup.ns, kRepeatRehearsal, stop);
  }
  if (verdict.has_value()) {
    means_.metrics.rehearsals.Add({std::string(VerdictName(*verdict))});
    return kube::Outcome{.requeue_after = Duration(0)};
  }
  return kube::Outcome{.requeue_after =
                           lacks_pods ? std::optional(kRepeatRehearsal) : std::nullopt};
}

absl::StatusOr<kube::Outcome> Warmups::Withdraw(const kube::ObjectName& name,
                                                const std::string& live_uid, std::stop_token stop) {
  std::vector<std::string> uids = LeftBehind(means_.world, name, live_uid);
  const bool is_gone = live_uid.empty();
  if (is_gone) {
    means_.metrics.Forget(name.ns, name.name);
    // Pods may wait for it although no NodeCache knows it.
    if (uids.empty()) {
      uids.emplace_back();
    }
  }
  kube::Outcome outcome;
  for (const std::string& uid : uids) {
    api::CacheWarmup gone{.ns = name.ns, .name = name.name, .uid = uid, .deleting = true};
    plan::Snapshot snapshot = Look(gone);
    if (!is_gone) {
      // Its pods now belong to the warmup that bears the name.
      snapshot.pods.clear();
    }
    CW_ASSIGN_OR_RETURN(const apply::Carried carried,
                        means_.executor.Execute(snapshot, plan::Decide(snapshot), stop));
    outcome = Sooner(outcome, RetryOf(carried));
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
  means_.rehearsals.Forget(before);
  means_.job_refusals.KeepOnly(before, {});
}

std::pair<plan::Snapshot, plan::Plan> Warmups::Decide(const api::CacheWarmup& warmup) {
  std::lock_guard lock(look_mutex_);
  plan::Snapshot snapshot = Look(warmup);
  plan::Plan plan = plan::Decide(snapshot);
  snapshot.nodes = {};
  return {std::move(snapshot), std::move(plan)};
}

plan::Snapshot Warmups::Look(const api::CacheWarmup& warmup) const {
  return observe::Observe(means_.world, warmup,
                          {.now = means_.clock.Now(),
                           .settings = means_.settings,
                           .rehearsal = means_.rehearsals.Last(warmup.uid),
                           .admission_missing = means_.admission_missing(),
                           .build_requests = means_.build_requests.States(warmup.uid),
                           .refused_jobs = means_.job_refusals.Of(warmup.uid),
                           .agent_namespace = means_.agent_namespace});
}

bool Warmups::IsStale(const api::CacheWarmup& warmup) {
  std::lock_guard lock(mutex_);
  const auto write = writes_.find(warmup.uid);
  if (write == writes_.end()) {
    return false;
  }
  if (write->second.on_version == warmup.resource_version &&
      means_.clock.Monotonic() - write->second.at < kStaleAtMost) {
    return true;
  }
  writes_.erase(write);
  return false;
}

void Warmups::NoteWrite(const api::CacheWarmup& warmup) {
  std::lock_guard lock(mutex_);
  writes_[warmup.uid] = {.on_version = warmup.resource_version, .at = means_.clock.Monotonic()};
}

void Warmups::ForgetWrite(const std::string& warmup_uid) {
  std::lock_guard lock(mutex_);
  writes_.erase(warmup_uid);
}

}  // namespace cachewarm::controllers
