// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/leader_elector.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/runtime/stop_after.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

constexpr Duration kReleaseLimit = std::chrono::seconds(3);
constexpr double kJitter = 0.2;

}  // namespace

absl::Status LeaderElector::Validate(const LeaderElectorOptions& options) {
  if (options.lease.name.empty() || options.lease.ns.empty() || options.identity.empty()) {
    return absl::InvalidArgumentError("lease and identity: must not be empty");
  }
  if (options.retry_period <= Duration(0) ||
      options.renew_deadline * 5 <= options.retry_period * 6 ||
      options.lease_duration <= options.renew_deadline) {
    return absl::InvalidArgumentError(
        "lease_duration must exceed renew_deadline, and renew_deadline must exceed 1.2 times "
        "retry_period");
  }
  return absl::OkStatus();
}

LeaderElector::LeaderElector(const Runtime& runtime, LeaderElectorOptions options)
    : runtime_(runtime), options_(std::move(options)) {}

absl::Status LeaderElector::Run(const std::function<void(std::stop_token)>& lead,
                                std::stop_token stop) {
  CW_RETURN_IF_ERROR(Validate(options_));
  if (!Acquire(stop)) {
    return absl::OkStatus();
  }
  runtime_.log.Info("leadership acquired", {{"identity", options_.identity}});
  leading_ = true;
  std::stop_source lost;
  {
    const std::stop_callback forward(stop, [&lost] { lost.request_stop(); });
    // A separate thread ends the leadership at the deadline, because a renewal can hang for longer.
    const std::jthread watchdog([this, &lost] { WatchDeadline(lost, lost.get_token()); });
    const std::jthread renewer([this, &lost] { Renew(lost, lost.get_token()); });
    lead(lost.get_token());
    lost.request_stop();
  }
  const bool was_lost = !leading_.exchange(false);
  if (was_lost) {
    runtime_.log.Warning("leadership lost", {{"identity", options_.identity}});
    return absl::AbortedError("the lease was lost");
  }
  Release();
  return absl::OkStatus();
}

bool LeaderElector::Acquire(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const MonoTime asked = runtime_.clock.Monotonic();
    if (TryAcquireOrRenew(stop)) {
      std::lock_guard lock(renewed_mutex_);
      renewed_at_ = asked;
      return true;
    }
    const double period = static_cast<double>(options_.retry_period.count());
    SleepFor(runtime_.clock,
             Duration(static_cast<int64_t>(period * (1.0 + kJitter * runtime_.random()))), stop);
  }
  return false;
}

void LeaderElector::Renew(std::stop_source& lost, std::stop_token stop) {
  while (SleepFor(runtime_.clock, options_.retry_period, stop)) {
    const MonoTime asked = runtime_.clock.Monotonic();
    if (TryAcquireOrRenew(stop)) {
      std::lock_guard lock(renewed_mutex_);
      renewed_at_ = asked;
      renewed_wake_.notify_all();
    } else if (IsHeldByAnother()) {
      leading_ = false;
      lost.request_stop();
    }
  }
}

void LeaderElector::WatchDeadline(std::stop_source& lost, std::stop_token stop) {
  std::unique_lock lock(renewed_mutex_);
  while (!stop.stop_requested()) {
    const MonoTime deadline = renewed_at_ + options_.renew_deadline;
    if (runtime_.clock.Monotonic() >= deadline) {
      leading_ = false;
      lock.unlock();
      lost.request_stop();
      return;
    }
    runtime_.clock.WaitUntil(lock, renewed_wake_, deadline, stop);
  }
}

bool LeaderElector::TryAcquireOrRenew(std::stop_token stop) {
  const absl::StatusOr<Json> lease = runtime_.client.Do(Get(kLeases, options_.lease), stop);
  if (absl::IsNotFound(lease.status())) {
    return Create(stop);
  }
  if (!lease.ok()) {
    if (!absl::IsCancelled(lease.status())) {
      runtime_.log.Warning("lease could not be read", {{"err", Message(lease.status())}});
    }
    return false;
  }
  Observe(*lease);
  return !IsHeldByAnother() && UpdateLease(stop);
}

bool LeaderElector::IsHeldByAnother() const {
  return observed_.has_value() && !observed_->holder.empty() &&
         observed_->holder != options_.identity &&
         runtime_.clock.Monotonic() < observed_->at + observed_->duration;
}

void LeaderElector::Observe(const Json& lease) {
  const Json* spec = codec::At(lease, {"spec"});
  ObservedLease now;
  now.holder = codec::TextAt(lease, {"spec", "holderIdentity"});
  now.spec = spec == nullptr ? "" : codec::DumpJson(*spec);
  now.resource_version = ResourceVersionOf(lease);
  now.acquired = codec::TextAt(lease, {"spec", "acquireTime"});
  now.transitions = codec::IntegerAt(lease, {"spec", "leaseTransitions"});
  // The duration in the record is clamped: an invalid record must not block the election forever.
  now.duration = std::clamp<Duration>(
      std::chrono::seconds(codec::IntegerAt(lease, {"spec", "leaseDurationSeconds"})), Duration(0),
      options_.lease_duration * 10);
  now.at = runtime_.clock.Monotonic();
  if (observed_.has_value() && observed_->spec == now.spec) {
    now.at = observed_->at;
  }
  observed_ = std::move(now);
}

Json LeaderElector::Record(const std::string& holder) const {
  const bool stays = observed_.has_value() && observed_->holder == options_.identity;
  const std::string now = FormatMicroTime(runtime_.clock.Now());
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options_.lease_duration).count();
  Json lease = {
      {"metadata", {{"name", options_.lease.name}, {"namespace", options_.lease.ns}}},
      {"spec",
       {{"holderIdentity", holder},
        {"leaseDurationSeconds", holder.empty() ? 1 : seconds},
        {"renewTime", now},
        {"acquireTime", stays && !observed_->acquired.empty() ? observed_->acquired : now},
        {"leaseTransitions",
         !observed_.has_value() ? 0 : observed_->transitions + (stays ? 0 : 1)}}}};
  if (observed_.has_value()) {
    lease["metadata"]["resourceVersion"] = observed_->resource_version;
  }
  return lease;
}

bool LeaderElector::Create(std::stop_token stop) {
  observed_.reset();
  const absl::StatusOr<Json> created =
      runtime_.client.Do(kube::Create(kLeases, Record(options_.identity), {}), stop);
  if (created.ok()) {
    Observe(*created);
  }
  return created.ok();
}

bool LeaderElector::UpdateLease(std::stop_token stop) {
  const absl::StatusOr<Json> taken =
      runtime_.client.Do(Update(kLeases, Record(options_.identity), {}), stop);
  if (taken.ok()) {
    Observe(*taken);
  } else if (!absl::IsAborted(taken.status()) && !absl::IsCancelled(taken.status())) {
    runtime_.log.Warning("lease could not be renewed", {{"err", Message(taken.status())}});
  }
  return taken.ok();
}

void LeaderElector::Release() {
  const StopAfter limit(runtime_.clock, kReleaseLimit);
  const absl::Status released = GiveUp(limit.token());
  if (!released.ok()) {
    runtime_.log.Warning("lease was not released; the next leader waits until the lease expires",
                         {{"err", Message(released)}});
  }
}

absl::Status LeaderElector::GiveUp(std::stop_token stop) {
  absl::Status written;
  // Repeat after a conflict (ABORTED): the last renewal may have been written, or may still be
  // written, although its response was lost.
  do {
    const absl::StatusOr<Json> lease = runtime_.client.Do(Get(kLeases, options_.lease), stop);
    if (!lease.ok()) {
      return absl::IsNotFound(lease.status()) ? absl::OkStatus() : lease.status();
    }
    Observe(*lease);
    if (observed_->holder != options_.identity) {
      return absl::OkStatus();
    }
    written = runtime_.client.Do(Update(kLeases, Record(""), {}), stop).status();
  } while (absl::IsAborted(written));
  return written;
}

}  // namespace cachewarm::kube
