// SPDX-License-Identifier: Apache-2.0
#include "lib/http/text/retry_after.h"

#include <string>

#include "gtest/gtest.h"

namespace cachewarm::http {
namespace {

constexpr char kDate[] = "Sat, 21 Nov 2026 15:00:00 GMT";

TEST(RetryAfter, ParsesSecondsOrDate) {
  const struct {
    std::string value;
    std::optional<Duration> wait;
  } cases[] = {
      {"0", Duration{0}},
      {"7", std::chrono::seconds(7)},
      {"3600", std::chrono::hours(1)},
      {"86400", std::chrono::hours(1)},
      {"9223372036854775807", std::chrono::hours(1)},
      {"Sat, 21 Nov 2026 15:00:09 GMT", std::chrono::seconds(9)},
      {"Sun, 22 Nov 2026 15:00:00 GMT", std::chrono::hours(1)},
      {"Sat, 21 Nov 2026 14:00:00 GMT", Duration{0}},
      {"", std::nullopt},
      {"-1", std::nullopt},
      {"+1", std::nullopt},
      {"1.5", std::nullopt},
      {"7 ", std::nullopt},
      {"99999999999999999999", std::nullopt},
      {"soon", std::nullopt},
      {"2026-11-21T15:00:09Z", std::nullopt},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(RetryAfter({{"Retry-After", c.value}, {"Date", kDate}}), c.wait) << c.value;
  }
}

TEST(RetryAfter, DateRequiresDateHeader) {
  const std::string later = "Sat, 21 Nov 2026 15:00:09 GMT";
  EXPECT_EQ(RetryAfter({{"Retry-After", later}}), std::nullopt);
  EXPECT_EQ(RetryAfter({{"Retry-After", later}, {"Date", "today"}}), std::nullopt);
  EXPECT_EQ(RetryAfter({{"Date", kDate}}), std::nullopt);
}

TEST(HttpDate, ParsesImfFixdateOnly) {
  EXPECT_EQ(ParseHttpDate("Thu, 01 Jan 1970 00:00:01 GMT"), WallTime(std::chrono::seconds(1)));
  EXPECT_EQ(ParseHttpDate("Sun, 06 Nov 1994 08:49:37 GMT"),
            WallTime(std::chrono::seconds(784111777)));
  for (const std::string text :
       {"", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 anF 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, -6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT "}) {
    EXPECT_EQ(ParseHttpDate(text), std::nullopt) << text;
  }
}

TEST(RetryAfter, IsStoredInStatusWithoutChangingIt) {
  absl::Status busy = absl::UnavailableError("busy");
  EXPECT_EQ(RetryAfterOf(busy), std::nullopt);
  SetRetryAfter(busy, Duration{1500});
  EXPECT_EQ(RetryAfterOf(busy), Duration{1500});
  EXPECT_EQ(busy.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(busy.message(), "busy");
}

TEST(RetryAfter, ZeroWaitDiffersFromNone) {
  absl::Status busy = absl::UnavailableError("busy");
  SetRetryAfter(busy, Duration{0});
  EXPECT_EQ(RetryAfterOf(busy), Duration{0});
}

}  // namespace
}  // namespace cachewarm::http
