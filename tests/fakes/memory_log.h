// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "lib/base/log.h"

namespace cachewarm::fakes {

// Records messages and lines. Thread-safe.
class MemoryLog final : public Log {
 public:
  void Write(LogLevel level, std::string_view msg, LogFields fields) override {
    std::lock_guard lock(mutex_);
    lines_.push_back(LogLine("", level, msg, fields));
    if (level >= LogLevel::kWarning) {
      warnings_.emplace_back(msg);
    }
    messages_.emplace_back(msg);
  }
  std::vector<std::string> messages() const {
    std::lock_guard lock(mutex_);
    return messages_;
  }
  std::vector<std::string> warnings() const {
    std::lock_guard lock(mutex_);
    return warnings_;
  }
  bool Has(std::string_view part) const { return Count(part) > 0; }
  int Count(std::string_view part) const {
    std::lock_guard lock(mutex_);
    return static_cast<int>(std::count_if(
        lines_.begin(), lines_.end(),
        [&](const std::string& line) { return line.find(part) != std::string::npos; }));
  }
  std::string Text() const {
    std::lock_guard lock(mutex_);
    std::string text;
    for (const std::string& line : lines_) {
      text.append(line).push_back('\n');
    }
    return text;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
  std::vector<std::string> warnings_;
  std::vector<std::string> lines_;
};

}  // namespace cachewarm::fakes
