// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "absl/status/statusor.h"

namespace cachewarm::bundle {

// Limits the number of concurrent calls: each call holds a permit. Thread-safe. Must outlive its
// permits.
class Semaphore {
 public:
  // The right to make one call. The destructor returns the permit to the semaphore.
  class Permit {
   public:
    explicit Permit(Semaphore* semaphore) : semaphore_(semaphore) {}
    Permit(Permit&& other) noexcept : semaphore_(std::exchange(other.semaphore_, nullptr)) {}
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (semaphore_ != nullptr) {
        semaphore_->Release();
      }
    }

   private:
    Semaphore* semaphore_;
  };

  // `count` is the number of permits; 0: no limit.
  explicit Semaphore(int count) : free_(count), limited_(count > 0) {}

  // Blocks until a permit is free. CANCELLED soon after `stop`.
  absl::StatusOr<Permit> Acquire(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    if (!limited_) {
      return Permit(nullptr);
    }
    if (!released_.wait(lock, std::move(stop), [this] { return free_ > 0; })) {
      return absl::CancelledError("stopped while waiting for a free connection");
    }
    --free_;
    return Permit(this);
  }

 private:
  void Release() {
    const std::lock_guard lock(mutex_);
    ++free_;
    released_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable_any released_;
  int free_;
  const bool limited_;
};

}  // namespace cachewarm::bundle
