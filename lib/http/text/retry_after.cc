// SPDX-License-Identifier: Apache-2.0
#include "lib/http/text/retry_after.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "absl/strings/cord.h"

namespace cachewarm::http {
namespace {

constexpr char kPayload[] = "cachewarm.io/retry-after-ms";
constexpr std::chrono::hours kWaitMost{1};
constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
constexpr std::string_view kShape = "aaa, 00 aaa 0000 00:00:00 GMT";

std::optional<int64_t> Digits(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && text.front() != '-'
             ? std::optional(number)
             : std::nullopt;
}

bool HasShape(std::string_view text) {
  return text.size() == kShape.size() &&
         std::equal(text.begin(), text.end(), kShape.begin(), [](char c, char shape) {
           if (shape == '0') {
             return c >= '0' && c <= '9';
           }
           return shape == 'a' ? (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') : c == shape;
         });
}

}  // namespace

std::optional<WallTime> ParseHttpDate(std::string_view text) {
  if (!HasShape(text)) {
    return std::nullopt;
  }
  const auto number = [text](size_t at, size_t size) { return *Digits(text.substr(at, size)); };
  const size_t month = kMonths.find(text.substr(8, 3));
  if (month == std::string_view::npos || month % 3 != 0) {
    return std::nullopt;
  }
  const std::chrono::year_month_day day{std::chrono::year(static_cast<int>(number(12, 4))),
                                        std::chrono::month(static_cast<unsigned>(month / 3 + 1)),
                                        std::chrono::day(static_cast<unsigned>(number(5, 2)))};
  // 60 is valid for a leap second.
  if (!day.ok() || number(17, 2) > 23 || number(20, 2) > 59 || number(23, 2) > 60) {
    return std::nullopt;
  }
  return std::chrono::sys_days(day) + std::chrono::hours(number(17, 2)) +
         std::chrono::minutes(number(20, 2)) + std::chrono::seconds(number(23, 2));
}

std::optional<Duration> RetryAfter(const Headers& headers) {
  const std::string text = headers.Find("Retry-After").value_or("");
  if (text.empty()) {
    return std::nullopt;
  }
  if (const auto seconds = Digits(text); seconds.has_value()) {
    const int64_t most = std::chrono::seconds(kWaitMost).count();
    return std::chrono::seconds(std::min(*seconds, most));
  }
  const auto until = ParseHttpDate(text);
  const auto now = ParseHttpDate(headers.Find("Date").value_or(""));
  if (!until.has_value() || !now.has_value()) {
    return std::nullopt;
  }
  return std::clamp<Duration>(*until - *now, Duration{0}, kWaitMost);
}

void SetRetryAfter(absl::Status& status, Duration wait) {
  status.SetPayload(kPayload, absl::Cord(std::to_string(wait.count())));
}

std::optional<Duration> RetryAfterOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) {
    return std::nullopt;
  }
  const std::string text(*payload);
  int64_t milliseconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  return error == std::errc() ? std::optional(Duration(milliseconds)) : std::nullopt;
}

}  // namespace cachewarm::http
