// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace cachewarm::apply {

// A counting semaphore for each namespace. Thread-safe.
class NamespaceSlots {
 public:
  explicit NamespaceSlots(size_t of_each) : of_each_(of_each) {}

  // Holds one slot of a namespace; the constructor blocks until one is free.
  class Guard {
   public:
    Guard(NamespaceSlots& slots, const std::string& ns) : slots_(slots), ns_(ns) {
      std::unique_lock lock(slots_.mutex_);
      slots_.released_.wait(lock, [&] { return slots_.in_use_[ns_] < slots_.of_each_; });
      ++slots_.in_use_[ns_];
    }
    ~Guard() {
      std::lock_guard lock(slots_.mutex_);
      if (--slots_.in_use_[ns_] == 0) {
        slots_.in_use_.erase(ns_);
      }
      slots_.released_.notify_all();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    NamespaceSlots& slots_;
    const std::string& ns_;
  };

 private:
  const size_t of_each_;
  std::mutex mutex_;
  std::condition_variable released_;
  std::map<std::string, size_t> in_use_;
};

}  // namespace cachewarm::apply
