// SPDX-License-Identifier: Apache-2.0
#include "lib/http/text/http_status.h"

#include <gtest/gtest.h>

#include <utility>

#include "lib/base/status.h"

namespace cachewarm::http {
namespace {

using absl::StatusCode;

TEST(HttpStatus, MapsCodesForRetryLoops) {
  const std::pair<int, StatusCode> table[] = {
      {200, StatusCode::kOk},
      {206, StatusCode::kOk},
      {307, StatusCode::kOk},
      {400, StatusCode::kInvalidArgument},
      {401, StatusCode::kUnauthenticated},
      {403, StatusCode::kPermissionDenied},
      {404, StatusCode::kNotFound},
      {405, StatusCode::kUnimplemented},
      {408, StatusCode::kUnavailable},
      {409, StatusCode::kAborted},
      {410, StatusCode::kOutOfRange},
      {411, StatusCode::kInvalidArgument},
      {412, StatusCode::kAborted},
      {413, StatusCode::kInvalidArgument},
      {414, StatusCode::kInvalidArgument},
      {415, StatusCode::kInvalidArgument},
      {416, StatusCode::kOutOfRange},
      {418, StatusCode::kUnknown},
      {422, StatusCode::kInvalidArgument},
      {429, StatusCode::kResourceExhausted},
      {431, StatusCode::kInvalidArgument},
      {500, StatusCode::kUnavailable},
      {501, StatusCode::kUnimplemented},
      {502, StatusCode::kUnavailable},
      {503, StatusCode::kUnavailable},
      {504, StatusCode::kDeadlineExceeded},
      {507, StatusCode::kResourceExhausted},
      {0, StatusCode::kUnknown},
      {99, StatusCode::kUnknown},
      {199, StatusCode::kUnknown},
      {599, StatusCode::kUnknown},
  };
  for (const auto& [status, code] : table) {
    EXPECT_EQ(CodeOfHttpStatus(status), code) << status;
  }
}

TEST(HttpStatus, ServerErrorsAreRetryable) {
  for (const int status : {408, 429, 500, 502, 503, 504, 507}) {
    EXPECT_TRUE(IsRetryable(absl::Status(CodeOfHttpStatus(status), "x"))) << status;
  }
  for (const int status : {400, 401, 403, 404, 405, 413, 422, 501}) {
    EXPECT_FALSE(IsRetryable(absl::Status(CodeOfHttpStatus(status), "x"))) << status;
  }
}

}  // namespace
}  // namespace cachewarm::http
