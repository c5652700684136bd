// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "lib/base/log.h"

namespace cachewarm::fakes {

// Remembers the events of a log, without their fields. Thread-safe.
class MemoryLog final : public Log {
 public:
  void Write(LogLevel level, std::string_view event, LogFields) override {
    std::lock_guard lock(mutex_);
    if (level >= LogLevel::kWarning) {
      warnings_.emplace_back(event);
    }
    events_.emplace_back(event);
  }
  std::vector<std::string> events() const {
    std::lock_guard lock(mutex_);
    return events_;
  }
  std::vector<std::string> warnings() const {
    std::lock_guard lock(mutex_);
    return warnings_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> events_;
  std::vector<std::string> warnings_;
};

}  // namespace cachewarm::fakes
