// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/work_queue.h"

#include <algorithm>

namespace cachewarm::kube {
namespace {

// Wait time that means "until notified"; short enough that adding it to a time cannot overflow.
constexpr Duration kIdle = std::chrono::hours(1);
constexpr int kFailuresMax = 64;  // with more failures, BackoffDelay() does not grow

}  // namespace

WorkQueue::WorkQueue(const Clock& clock, BackoffPolicy backoff, Lanes lanes)
    : clock_(clock), backoff_(backoff), lanes_(lanes) {}

void WorkQueue::Add(const std::string& key) {
  std::lock_guard lock(mutex_);
  AddLocked(key);
}

void WorkQueue::AddLocked(const std::string& key) {
  if (shut_down_ || !dirty_.insert(key).second || lanes_.IsProcessed(key)) {
    return;
  }
  lanes_.Add(key);
  wake_.notify_one();
}

void WorkQueue::AddAfter(const std::string& key, Duration delay) {
  std::lock_guard lock(mutex_);
  AddAfterLocked(key, delay);
}

void WorkQueue::AddAfterLocked(const std::string& key, Duration delay) {
  if (shut_down_) {
    return;
  }
  if (delay <= Duration(0)) {
    AddLocked(key);
    return;
  }
  const MonoTime due = clock_.Monotonic() + delay;
  const auto [at, added] = delayed_.try_emplace(key, due);
  if (added || due < at->second) {
    at->second = due;
    wake_.notify_all();
  }
}

void WorkQueue::AddWithBackoff(const std::string& key) {
  std::lock_guard lock(mutex_);
  int& failures = failures_[key];
  const Duration delay = BackoffDelay(backoff_, failures, 0.0);
  failures = std::min(failures + 1, kFailuresMax);
  AddAfterLocked(key, delay);
}

void WorkQueue::Forget(const std::string& key) {
  std::lock_guard lock(mutex_);
  failures_.erase(key);
}

int WorkQueue::Failures(const std::string& key) const {
  std::lock_guard lock(mutex_);
  const auto found = failures_.find(key);
  return found == failures_.end() ? 0 : found->second;
}

std::optional<MonoTime> WorkQueue::PromoteDue() {
  const MonoTime now = clock_.Monotonic();
  std::optional<MonoTime> next;
  for (auto at = delayed_.begin(); at != delayed_.end();) {
    if (at->second <= now) {
      AddLocked(at->first);
      at = delayed_.erase(at);
    } else {
      next = std::min(next.value_or(at->second), at->second);
      ++at;
    }
  }
  return next;
}

std::optional<std::string> WorkQueue::Get(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    std::optional<MonoTime> next = PromoteDue();
    if (std::optional<std::string> key = lanes_.Take(clock_.Monotonic())) {
      dirty_.erase(*key);
      if (lanes_.waiting() > 0) {
        wake_.notify_one();  // the lane that was free for this key may have room for another one
      }
      return key;
    }
    if (shut_down_ && lanes_.waiting() == 0) {
      return std::nullopt;
    }
    if (const auto change = lanes_.NextChange(); change.has_value()) {
      next = std::min(next.value_or(*change), *change);
    }
    clock_.WaitUntil(lock, wake_, next.value_or(clock_.Monotonic() + kIdle), stop);
  }
  return std::nullopt;
}

void WorkQueue::Done(const std::string& key) {
  std::lock_guard lock(mutex_);
  lanes_.Done(key, clock_.Monotonic(), !failures_.contains(key));
  if (dirty_.contains(key)) {
    lanes_.Add(key);
  }
  wake_.notify_all();
}

void WorkQueue::ShutDown() {
  std::lock_guard lock(mutex_);
  shut_down_ = true;
  delayed_.clear();
  wake_.notify_all();
}

bool WorkQueue::Drain(Duration limit) {
  ShutDown();
  std::unique_lock lock(mutex_);
  const MonoTime deadline = clock_.Monotonic() + limit;
  while (lanes_.waiting() > 0 || lanes_.processed() > 0) {
    if (clock_.Monotonic() >= deadline) {
      return false;
    }
    clock_.WaitUntil(lock, wake_, deadline, {});
  }
  return true;
}

size_t WorkQueue::size() const {
  std::lock_guard lock(mutex_);
  return lanes_.waiting();
}

size_t WorkQueue::delayed() const {
  std::lock_guard lock(mutex_);
  return delayed_.size();
}

}  // namespace cachewarm::kube
