// SPDX-License-Identifier: Apache-2.0
#include "lib/base/clock.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "fmt/format.h"

namespace cachewarm {
namespace {

using std::chrono::duration_cast;
using std::chrono::floor;

// Reads exactly `width` digits at `at`. Returns -1 if there are fewer.
int Digits(std::string_view text, size_t at, size_t width) {
  if (at + width > text.size()) {
    return -1;
  }
  int value = 0;
  for (char c : text.substr(at, width)) {
    if (c < '0' || c > '9') {
      return -1;
    }
    value = value * 10 + (c - '0');
  }
  return value;
}

absl::Status NotATime(std::string_view text) {
  return absl::InvalidArgumentError(
      fmt::format("\"{}\" is not an RFC 3339 time such as 2026-01-31T12:00:00Z", text));
}

// Reads the optional fraction of a second at `at` and moves `at` behind it. Returns milliseconds,
// or -1 if the fraction is malformed.
int FractionMillis(std::string_view text, size_t& at) {
  if (at >= text.size() || text[at] != '.') {
    return 0;
  }
  ++at;
  int millis = 0;
  int scale = 100;
  size_t first = at;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    millis += (text[at] - '0') * scale;
    scale /= 10;
    ++at;
  }
  return at == first || at - first > 9 ? -1 : millis;
}

// Parses the end of a time: "Z" or the difference of local time to UTC, such as "+02:00".
std::optional<Duration> ParseOffset(std::string_view text) {
  if (text == "Z") {
    return Duration(0);
  }
  constexpr size_t kBytes = 6;
  if (text.size() != kBytes || (text[0] != '+' && text[0] != '-') || text[3] != ':') {
    return std::nullopt;
  }
  const int hours = Digits(text, 1, 2);
  const int minutes = Digits(text, 4, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) {
    return std::nullopt;
  }
  const Duration offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return text[0] == '+' ? offset : -offset;
}

// True if FormatTime() writes the year in four digits.
bool HasFourDigitYear(WallTime time) {
  const std::chrono::year_month_day date(floor<std::chrono::days>(time));
  return date.year() >= std::chrono::year(0) && date.year() <= std::chrono::year(9999);
}

}  // namespace

bool SleepFor(const Clock& clock, Duration duration, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  const MonoTime deadline = clock.Monotonic() + duration;
  while (!stop.stop_requested() && clock.Monotonic() < deadline) {
    clock.WaitUntil(lock, never, deadline, stop);
  }
  return !stop.stop_requested();
}

std::string FormatTime(WallTime time) {
  const auto day = floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(floor<std::chrono::seconds>(time - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::string FormatMicroTime(WallTime time) {
  std::string text = FormatTime(time);
  const auto millis = (time - floor<std::chrono::seconds>(time)).count();
  text.insert(text.size() - 1, fmt::format(".{:03}000", millis));
  return text;
}

absl::StatusOr<WallTime> ParseTime(std::string_view text) {
  const std::array<int, 6> part = {Digits(text, 0, 4),  Digits(text, 5, 2),  Digits(text, 8, 2),
                                   Digits(text, 11, 2), Digits(text, 14, 2), Digits(text, 17, 2)};
  for (int value : part) {
    if (value < 0) {
      return NotATime(text);
    }
  }
  if (text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':') {
    return NotATime(text);
  }
  size_t at = 19;
  const int millis = FractionMillis(text, at);
  const std::chrono::year_month_day date{std::chrono::year(part[0]),
                                         std::chrono::month(static_cast<unsigned>(part[1])),
                                         std::chrono::day(static_cast<unsigned>(part[2]))};
  const std::optional<Duration> offset = ParseOffset(text.substr(at));
  if (millis < 0 || !offset.has_value() || !date.ok() || part[3] > 23 || part[4] > 59 ||
      part[5] > 60) {
    return NotATime(text);
  }
  const WallTime time = WallTime(std::chrono::sys_days(date)) + std::chrono::hours(part[3]) +
                        std::chrono::minutes(part[4]) + std::chrono::seconds(part[5]) +
                        Duration(millis) - *offset;
  return HasFourDigitYear(time) ? absl::StatusOr<WallTime>(time) : NotATime(text);
}

std::string FormatDuration(Duration duration) {
  const int64_t millis = duration.count();
  if (millis < 0) {
    return "-" + FormatDuration(-std::max(duration, -Duration::max()));
  }
  const int64_t seconds = millis / 1000;
  if (seconds < 1) {
    return fmt::format("{}ms", millis);
  }
  if (seconds < 60) {
    return fmt::format("{}s", seconds);
  }
  if (seconds < 3600) {
    return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  }
  if (seconds < 86400) {
    return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
  }
  return fmt::format("{}d{}h", seconds / 86400, seconds / 3600 % 24);
}

}  // namespace cachewarm
