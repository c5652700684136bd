// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "absl/status/statusor.h"

namespace cachewarm::bundle {

// So many may work at once; the others wait. Thread-safe; must outlive its slots.
class Semaphore {
 public:
  // Free again with its end.
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

  // 0: any number.
  explicit Semaphore(int count) : free_(count), limited_(count > 0) {}

  absl::StatusOr<Permit> Acquire(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    if (!limited_) {
      return Permit(nullptr);
    }
    if (!released_.wait(lock, std::move(stop), [this] { return free_ > 0; })) {
      return absl::CancelledError("stopped while a free connection was waited for");
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
