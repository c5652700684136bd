// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/history.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "lib/api/reasons.h"

namespace cachewarm::agent {
namespace {

TEST(FetchReason, TellsPeopleWhereToLook) {
  struct Case {
    absl::StatusCode code;
    std::string_view reason;
    bool is_bundle_fault;
  };
  const std::vector<Case> cases = {
      {absl::StatusCode::kDataLoss, api::reason::kVerifyFailed, true},
      {absl::StatusCode::kInvalidArgument, api::reason::kVerifyFailed, true},
      {absl::StatusCode::kOutOfRange, api::reason::kOverLimit, true},
      {absl::StatusCode::kNotFound, api::reason::kFetchFailed, true},
      {absl::StatusCode::kResourceExhausted, api::reason::kDiskFull, false},
      {absl::StatusCode::kUnavailable, api::reason::kFetchFailed, false},
      {absl::StatusCode::kDeadlineExceeded, api::reason::kFetchFailed, false},
      {absl::StatusCode::kUnauthenticated, api::reason::kFetchFailed, false},
      {absl::StatusCode::kPermissionDenied, api::reason::kFetchFailed, false},
      {absl::StatusCode::kInternal, api::reason::kFetchFailed, false},
  };
  for (const Case& each : cases) {
    const absl::Status status(each.code, "x");
    EXPECT_EQ(FetchReason(status), each.reason) << status;
    EXPECT_EQ(IsBundleFault(status), each.is_bundle_fault) << status;
  }
}

TEST(NoteSetback, WaitsLongerEachTimeUpToTheMost) {
  const BackoffPolicy policy{.first = Duration(1000), .most = Duration(8000), .jitter = 0};
  const MonoTime now{std::chrono::seconds(100)};
  Setback setback;
  std::vector<int64_t> waits;
  for (int i = 0; i < 6; ++i) {
    NoteSetback(setback, absl::UnavailableError("down"), policy, 0.5, now);
    waits.push_back((setback.not_before - now).count());
  }
  EXPECT_EQ(waits, (std::vector<int64_t>{1000, 2000, 4000, 8000, 8000, 8000}));
  EXPECT_EQ(setback.failures, 6);
  EXPECT_EQ(setback.reason, api::reason::kFetchFailed);
  EXPECT_EQ(setback.message, "down");
}

}  // namespace
}  // namespace cachewarm::agent
