// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "lib/base/log_keys.h"

namespace cachewarm {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

absl::StatusOr<LogLevel> ParseLogLevel(std::string_view text);

using LogValue = std::variant<std::string, int64_t, double, bool>;

// One named value of a log line. Numbers and booleans keep their type in the JSON.
struct LogField {
  std::string_view name;
  LogValue value;

  LogField(LogKey n, std::string_view v) : name(n.text()), value(std::string(v)) {}
  LogField(LogKey n, const char* v) : name(n.text()), value(std::string(v)) {}
  LogField(LogKey n, const std::string& v) : name(n.text()), value(v) {}
  LogField(LogKey n, bool v) : name(n.text()), value(v) {}
  LogField(LogKey n, double v) : name(n.text()), value(v) {}
  LogField(LogKey n, int v) : name(n.text()), value(int64_t{v}) {}
  LogField(LogKey n, int64_t v) : name(n.text()), value(v) {}
  LogField(LogKey n, uint64_t v) : name(n.text()), value(static_cast<int64_t>(v)) {}
};

using LogFields = std::initializer_list<LogField>;

// Receives log lines. Thread-safe. `msg` is a constant text that says what happened ("bundle
// published"). Everything that varies is a field.
class Log {
 public:
  Log() = default;
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  virtual ~Log() = default;

  virtual void Write(LogLevel level, std::string_view msg, LogFields fields) = 0;

  void Debug(std::string_view msg, LogFields fields = {}) { Write(LogLevel::kDebug, msg, fields); }
  void Info(std::string_view msg, LogFields fields = {}) { Write(LogLevel::kInfo, msg, fields); }
  void Warning(std::string_view msg, LogFields fields = {}) {
    Write(LogLevel::kWarning, msg, fields);
  }
  void Error(std::string_view msg, LogFields fields = {}) { Write(LogLevel::kError, msg, fields); }
};

// Formats one line of JSON: {"ts":...,"level":...,"msg":...,fields...}. Pure. `time` is written as
// given (RFC 3339). Replaces invalid UTF-8 by U+FFFD.
std::string LogLine(std::string_view time, LogLevel level, std::string_view msg, LogFields fields);

}  // namespace cachewarm
