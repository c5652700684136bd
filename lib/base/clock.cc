// SPDX-License-Identifier: Apache-2.0
#include "lib/base/clock.h"

#include <algorithm>
#include <array>
#include <charconv>

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
      fmt::format("\"{}\" is not an RFC 3339 time in UTC such as 2026-01-31T12:00:00Z", text));
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
  if (millis < 0 || text.substr(at) != "Z" || !date.ok() || part[3] > 23 || part[4] > 59 ||
      part[5] > 60) {
    return NotATime(text);
  }
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(part[3]) +
         std::chrono::minutes(part[4]) + std::chrono::seconds(part[5]) + Duration(millis);
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
