// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/core/error.h"

#include <gtest/gtest.h>

#include "lib/base/status.h"
#include "lib/codec/json_value.h"

namespace cachewarm::kube {
namespace {

using absl::StatusCode;
using codec::Json;

TEST(ApiError, MapsEveryCode) {
  const std::tuple<int, std::string, StatusCode> table[] = {
      {400, "BadRequest", StatusCode::kInvalidArgument},
      {405, "MethodNotAllowed", StatusCode::kUnimplemented},
      {409, "AlreadyExists", StatusCode::kAlreadyExists},
      {409, "Conflict", StatusCode::kAborted},
      {409, "", StatusCode::kAborted},
      {422, "AlreadyExists", StatusCode::kInvalidArgument},
      {410, "Gone", StatusCode::kOutOfRange},
      {410, "Expired", StatusCode::kOutOfRange},
      {500, "Expired", StatusCode::kOutOfRange},
      {500, "InternalError", StatusCode::kUnavailable},
      {504, "Timeout", StatusCode::kDeadlineExceeded},
      {599, "", StatusCode::kUnknown},
      {200, "", StatusCode::kUnknown},
      {0, "", StatusCode::kUnknown},
  };
  for (const auto& [code, reason, expected] : table) {
    const absl::Status status = ToStatus({.code = code, .reason = reason, .message = "m"});
    EXPECT_EQ(status.code(), expected) << code << reason;
    EXPECT_EQ(HttpCodeOf(status), code);
    EXPECT_EQ(ReasonOf(status), reason);
    EXPECT_EQ(Message(status), "m");
  }
}

TEST(ApiError, ParsesStatusObject) {
  const ApiError error = ParseApiError(Json::parse(R"({"kind": "Status", "code": 429,
    "reason": "TooManyRequests", "message": "slow down",
    "details": {"retryAfterSeconds": 3}})"),
                                       500);
  EXPECT_EQ(error.code, 429);
  EXPECT_EQ(error.reason, "TooManyRequests");
  EXPECT_EQ(error.message, "slow down");
  EXPECT_EQ(error.retry_after, std::chrono::seconds(3));
  EXPECT_EQ(http::RetryAfterOf(ToStatus(error)), std::chrono::seconds(3));
}

TEST(ApiError, OtherBodiesKeepTheHttpCode) {
  for (const char* text :
       {"{}", "null", "[]", R"({"code": "x", "reason": 3, "message": [], "details": 1})",
        R"({"code": 7})", R"({"code": 99999999999})",
        R"({"details": {"retryAfterSeconds": -1}})"}) {
    const ApiError error = ParseApiError(Json::parse(text), 503);
    EXPECT_EQ(error.code, 503) << text;
    EXPECT_EQ(error.reason, "") << text;
    EXPECT_EQ(error.retry_after, std::nullopt) << text;
  }
}

TEST(ApiError, LimitsRetryAfter) {
  const ApiError error =
      ParseApiError(Json::parse(R"({"details": {"retryAfterSeconds": 99999999999}})"), 429);
  EXPECT_EQ(error.retry_after, std::chrono::hours(1));
}

TEST(ApiError, OtherStatusesCarryNoApiError) {
  const absl::Status status = absl::InternalError("other");
  EXPECT_EQ(HttpCodeOf(status), 0);
  EXPECT_EQ(ReasonOf(status), "");
  EXPECT_EQ(http::RetryAfterOf(status), std::nullopt);
}

TEST(ApiError, ErrorWithoutMessageGetsADefault) {
  EXPECT_NE(Message(ToStatus({.code = 500})), "");
}

}  // namespace
}  // namespace cachewarm::kube
