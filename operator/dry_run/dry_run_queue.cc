// SPDX-License-Identifier: Apache-2.0
#include "operator/dry_run/dry_run_queue.h"

#include <utility>

namespace cachewarm::dry_run {

void DryRunQueue::Request(const api::CacheWarmup& warmup, const model::DryRunRequest& request) {
  Update(warmup, [&](Pending& pending) {
    pending.requested_time = deps_.clock.Now();
    pending.request = request;
  });
}

void DryRunQueue::RequestAgain(const api::CacheWarmup& warmup, Duration interval) {
  Update(warmup, [&](Pending& pending) { pending.repeat_interval = interval; });
}

void DryRunQueue::RequestRelease(const api::CacheWarmup& warmup,
                                 std::shared_ptr<const api::Pod> pod) {
  Update(warmup, [&](Pending& pending) { pending.release = std::move(pod); });
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
  if (pending.release != nullptr) {
    deps_.releases.Run(*pending.release, stop);
  }
  if (IsAnswered(pending)) {
    return kube::Outcome{};
  }
  std::optional<model::AdmissionDryRun> result;
  if (pending.request.has_value()) {
    result = deps_.dry_runs.Run(pending.warmup_uid, pending.ns, *pending.request, stop);
  } else if (pending.repeat_interval.has_value()) {
    result = deps_.dry_runs.Rerun(pending.warmup_uid, pending.ns, *pending.repeat_interval, stop);
  }
  if (result.has_value()) {
    deps_.on_result(key, *result);
  }
  return kube::Outcome{};
}

void DryRunQueue::Update(const api::CacheWarmup& warmup,
                         const std::function<void(Pending&)>& change) {
  const std::string key = warmup.ns + "/" + warmup.name;
  {
    std::lock_guard lock(mutex_);
    Pending& pending = pending_[key];
    if (pending.warmup_uid != warmup.uid) {
      pending = {.ns = warmup.ns, .warmup_uid = warmup.uid};
    }
    change(pending);
  }
  deps_.queue.Add(key);
}

bool DryRunQueue::IsAnswered(const Pending& pending) const {
  const model::AdmissionDryRun last = deps_.dry_runs.Last(pending.warmup_uid);
  return pending.request.has_value() && last.fingerprint == pending.request->fingerprint &&
         last.time > pending.requested_time;
}

}  // namespace cachewarm::dry_run
