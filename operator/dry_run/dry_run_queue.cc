// SPDX-License-Identifier: Apache-2.0
#include "operator/dry_run/dry_run_queue.h"

#include <utility>

namespace cachewarm::dry_run {

void DryRunQueue::Request(const api::CacheWarmup& warmup, const model::DryRunRequest& request) {
  Add(warmup, {.ns = warmup.ns,
               .warmup_uid = warmup.uid,
               .requested_time = deps_.clock.Now(),
               .request = request});
}

void DryRunQueue::RequestAgain(const api::CacheWarmup& warmup, Duration interval) {
  Add(warmup, {.ns = warmup.ns,
               .warmup_uid = warmup.uid,
               .requested_time = deps_.clock.Now(),
               .request = std::nullopt,
               .interval = interval});
}

absl::StatusOr<kube::Outcome> DryRunQueue::Reconcile(const std::string& key, std::stop_token stop) {
  Pending pending;
  {
    std::lock_guard lock(mutex_);
    auto found = pending_.extract(key);
    if (found.empty()) {
      return kube::Outcome{};
    }
    pending = std::move(found.mapped());
  }
  if (IsAnswered(pending)) {
    return kube::Outcome{};
  }
  std::optional<model::AdmissionDryRun> result;
  if (pending.request.has_value()) {
    result = deps_.dry_runs.Run(pending.warmup_uid, pending.ns, *pending.request, stop);
  } else {
    result = deps_.dry_runs.Rerun(pending.warmup_uid, pending.ns, pending.interval, stop);
  }
  if (result.has_value()) {
    deps_.on_result(key, *result);
  }
  return kube::Outcome{};
}

void DryRunQueue::Add(const api::CacheWarmup& warmup, Pending pending) {
  const std::string key = warmup.ns + "/" + warmup.name;
  {
    std::lock_guard lock(mutex_);
    pending_[key] = std::move(pending);
  }
  deps_.queue.Add(key);
}

bool DryRunQueue::IsAnswered(const Pending& pending) const {
  const model::AdmissionDryRun last = deps_.dry_runs.Last(pending.warmup_uid);
  return pending.request.has_value() && last.fingerprint == pending.request->fingerprint &&
         last.time > pending.requested_time;
}

}  // namespace cachewarm::dry_run
