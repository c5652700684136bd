// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "absl/status/statusor.h"

namespace cachewarm::bundle {

// So many may work at once; the others wait. Thread-safe; must outlive its slots.
class Slots {
 public:
  // Free again with its end.
  class Slot {
   public:
    explicit Slot(Slots* slots) : slots_(slots) {}
    Slot(Slot&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)) {}
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (slots_ != nullptr) {
        slots_->Leave();
      }
    }

   private:
    Slots* slots_;
  };

  // 0: any number.
  explicit Slots(int count) : free_(count), limited_(count > 0) {}

  absl::StatusOr<Slot> Enter(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    if (!limited_) {
      return Slot(nullptr);
    }
    if (!left_.wait(lock, std::move(stop), [this] { return free_ > 0; })) {
      return absl::CancelledError("stopped while a free connection was waited for");
    }
    --free_;
    return Slot(this);
  }

 private:
  void Leave() {
    const std::lock_guard lock(mutex_);
    ++free_;
    left_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable_any left_;
  int free_;
  const bool limited_;
};

}  // namespace cachewarm::bundle
