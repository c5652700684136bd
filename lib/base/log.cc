// SPDX-License-Identifier: Apache-2.0
#include "lib/base/log.h"

#include <cmath>

#include "fmt/format.h"
#include "lib/base/utf8.h"

namespace cachewarm {
namespace {

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

void AppendEscaped(std::string& out, unsigned char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    default:
      if (c < 0x20) {
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
      } else {
        out += static_cast<char>(c);
      }
  }
}

// Appends a JSON string. Escapes control characters and replaces invalid UTF-8, because file names
// and termination messages of containers are untrusted.
void AppendString(std::string& out, std::string_view text) {
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8SequenceLength(text, at);
    if (length == 0) {
      out += "\\ufffd";
      ++at;
    } else if (length == 1) {
      AppendEscaped(out, static_cast<unsigned char>(text[at]));
      ++at;
    } else {
      out += text.substr(at, length);
      at += length;
    }
  }
  out += '"';
}

struct AppendValue {
  std::string& out;
  void operator()(const std::string& value) const { AppendString(out, value); }
  void operator()(int64_t value) const { out += fmt::format("{}", value); }
  void operator()(double value) const {
    out += std::isfinite(value) ? fmt::format("{:.6g}", value) : "null";
  }
  void operator()(bool value) const { out += value ? "true" : "false"; }
};

}  // namespace

absl::StatusOr<LogLevel> ParseLogLevel(std::string_view text) {
  for (LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (text == LevelName(level)) {
      return level;
    }
  }
  return absl::InvalidArgumentError(
      fmt::format("log level \"{}\" is none of debug, info, warning, error", text));
}

std::string LogLine(std::string_view time, LogLevel level, std::string_view msg, LogFields fields) {
  std::string out = "{\"ts\":";
  AppendString(out, time);
  out += ",\"level\":";
  AppendString(out, LevelName(level));
  out += ",\"msg\":";
  AppendString(out, msg);
  for (const LogField& field : fields) {
    out += ',';
    AppendString(out, field.name);
    out += ':';
    std::visit(AppendValue{out}, field.value);
  }
  out += '}';
  return out;
}

}  // namespace cachewarm
