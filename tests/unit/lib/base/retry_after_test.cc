// SPDX-License-Identifier: Apache-2.0
#include "lib/base/retry_after.h"

#include "gtest/gtest.h"

namespace cachewarm {
namespace {

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
}  // namespace cachewarm
