// SPDX-License-Identifier: Apache-2.0
#include "lib/base/log.h"

#include <cmath>

#include "fmt/format.h"

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

// Length of the well-formed UTF-8 sequence at `text[at]` (RFC 3629 table 3-7), 0 when there is
// none: hostile file names and last words of a container reach the log.
size_t SequenceLength(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned lead = byte(at);
  size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    low = lead == 0xE0 ? 0xA0 : low;
    high = lead == 0xED ? 0x9F : high;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    low = lead == 0xF0 ? 0x90 : low;
    high = lead == 0xF4 ? 0x8F : high;
  } else {
    return 0;
  }
  if (byte(at + 1) < low || byte(at + 1) > high) {
    return 0;
  }
  for (size_t i = 2; i < length; ++i) {
    if (byte(at + i) < 0x80 || byte(at + i) > 0xBF) {
      return 0;
    }
  }
  return length;
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

void AppendString(std::string& out, std::string_view text) {
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const size_t length = SequenceLength(text, at);
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
  for (LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (text == LevelName(level)) {
      return level;
    }
  }
  return absl::InvalidArgumentError(
      fmt::format("log level \"{}\" is none of debug, info, warning, error", text));
}

std::string LogLine(std::string_view time, LogLevel level, std::string_view event,
                    LogFields fields) {
  std::string out = "{\"ts\":";
  AppendString(out, time);
  out += ",\"level\":";
  AppendString(out, LevelName(level));
  out += ",\"event\":";
  AppendString(out, event);
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
