// SPDX-License-Identifier: Apache-2.0
#include "agent/watch/status_writer.h"

#include <algorithm>
#include <utility>

#include "agent/sync/report.h"
#include "lib/api/names.h"
#include "lib/base/backoff.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/request.h"

namespace cachewarm::agent {
namespace {

constexpr MonoTime kNever = MonoTime::max();

}  // namespace

StatusWriter::StatusWriter(const kube::Runtime& runtime, StatusWriterOptions options)
    : runtime_(runtime), options_(std::move(options)) {}

void StatusWriter::Set(const std::string& target, api::NodeCacheStatus status) {
  {
    std::lock_guard lock(mutex_);
    if (target != target_) {
      target_ = target;
      written_.reset();
      failures_ = 0;
      not_before_ = MonoTime{};
    }
    const bool has_changed = !written_.has_value() || HasStatusChanged(*written_, status);
    if (!has_changed) {
      changed_since_.reset();
    } else if (!changed_since_.has_value()) {
      changed_since_ = runtime_.clock.Monotonic();
    }
    wanted_ = std::move(status);
  }
  wake_.notify_all();
}

bool StatusWriter::HasWritten() const {
  std::lock_guard lock(mutex_);
  return has_written_;
}

MonoTime StatusWriter::NextWrite() const {
  if (!wanted_.has_value() || target_.empty()) {
    return kNever;
  }
  MonoTime next = written_.has_value() ? heartbeat_due_ : kNever;
  if (changed_since_.has_value()) {
    next = std::min(next, *changed_since_ + options_.coalesce);
  }
  return next == kNever ? kNever : std::max(next, not_before_);
}

void StatusWriter::WaitForWork(std::unique_lock<std::mutex>& lock, std::stop_token stop) {
  while (!stop.stop_requested()) {
    const MonoTime next = NextWrite();
    const MonoTime now = runtime_.clock.Monotonic();
    if (next <= now) {
      return;
    }
    // Limit the wait, because MonoTime::max() would overflow in WaitUntil().
    const MonoTime until = std::min(next, now + Duration(3'600'000));
    runtime_.clock.WaitUntil(lock, wake_, until, stop);
  }
}

void StatusWriter::Run(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    WaitForWork(lock, stop);
    if (stop.stop_requested()) {
      return;
    }
    api::NodeCacheStatus status = *wanted_;
    const std::string target = target_;
    changed_since_.reset();
    lock.unlock();
    Write(std::move(status), target, stop);
    lock.lock();
  }
}

void StatusWriter::Write(api::NodeCacheStatus status, const std::string& target,
                         std::stop_token stop) {
  status.heartbeat = runtime_.clock.Now();
  codec::Json object;
  object["metadata"]["name"] = options_.node_name;
  object["status"] = api::EncodeStatus(status);
  const kube::Request request =
      kube::Apply(kube::kNodeCaches, object,
                  {.field_manager = std::string(api::kAgentManager), .subresource = "status"});
  const absl::StatusOr<codec::Json> answer = runtime_.client.Do(request, std::move(stop));
  const MonoTime now = runtime_.clock.Monotonic();
  std::lock_guard lock(mutex_);
  if (target != target_) {
    return;
  }
  if (answer.ok()) {
    const double jitter = 1.0 + runtime_.random() / 5;
    failures_ = 0;
    not_before_ = MonoTime{};
    has_written_ = true;
    heartbeat_due_ =
        now +
        Duration(static_cast<int64_t>(static_cast<double>(options_.heartbeat.count()) * jitter));
    if (wanted_.has_value() && HasStatusChanged(status, *wanted_) && !changed_since_.has_value()) {
      changed_since_ = now;
    }
    written_ = std::move(status);
    return;
  }
  if (absl::IsCancelled(answer.status())) {
    return;
  }
  if (failures_ == 0) {
    runtime_.log.Warning("cannot write NodeCache status; retrying",
                         {{"node", options_.node_name}, {"err", Message(answer.status())}});
  }
  not_before_ = now + BackoffDelay({.first = options_.retry_first, .most = options_.retry_most},
                                   failures_, runtime_.random());
  ++failures_;
  changed_since_ = changed_since_.value_or(now);
}

}  // namespace cachewarm::agent
