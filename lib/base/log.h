// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"

namespace cachewarm {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

absl::StatusOr<LogLevel> ParseLogLevel(std::string_view text);

using LogValue = std::variant<std::string, int64_t, double, bool>;

// One named value of a log line. Numbers and booleans stay so in the JSON.
struct LogField {
  std::string_view name;
  LogValue value;

  LogField(std::string_view n, std::string_view v) : name(n), value(std::string(v)) {}
  LogField(std::string_view n, const char* v) : name(n), value(std::string(v)) {}
  LogField(std::string_view n, const std::string& v) : name(n), value(v) {}
  LogField(std::string_view n, bool v) : name(n), value(v) {}
  LogField(std::string_view n, double v) : name(n), value(v) {}
  LogField(std::string_view n, int v) : name(n), value(int64_t{v}) {}
  LogField(std::string_view n, int64_t v) : name(n), value(v) {}
  LogField(std::string_view n, uint64_t v) : name(n), value(static_cast<int64_t>(v)) {}
};

using LogFields = std::initializer_list<LogField>;

// Where one event goes. Thread-safe. An event is a past-tense sentence without variables in it
// ("bundle published"); everything that varies is a field.
class Log {
 public:
  Log() = default;
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  virtual ~Log() = default;

  virtual void Write(LogLevel level, std::string_view event, LogFields fields) = 0;

  void Debug(std::string_view event, LogFields fields = {}) {
    Write(LogLevel::kDebug, event, fields);
  }
  void Info(std::string_view event, LogFields fields = {}) {
    Write(LogLevel::kInfo, event, fields);
  }
  void Warning(std::string_view event, LogFields fields = {}) {
    Write(LogLevel::kWarning, event, fields);
  }
  void Error(std::string_view event, LogFields fields = {}) {
    Write(LogLevel::kError, event, fields);
  }
};

// One line of JSON an event: {"ts":...,"level":...,"event":...,fields...}. Pure; the time is
// RFC 3339 with milliseconds. Invalid UTF-8 is replaced, never thrown at.
std::string LogLine(std::string_view time, LogLevel level, std::string_view event,
                    LogFields fields);

}  // namespace cachewarm
