// SPDX-License-Identifier: Apache-2.0
#include "lib/base/status.h"

#include <gtest/gtest.h>

#include "lib/http/client.h"

namespace cachewarm::http {
namespace {

TEST(StatusOf, EveryCodeSaysWhatARetryLoopShouldDo) {
  using absl::StatusCode;
  const std::pair<int, StatusCode> table[] = {
      {200, StatusCode::kOk},
      {206, StatusCode::kOk},
      {307, StatusCode::kOk},
      {400, StatusCode::kInvalidArgument},
      {401, StatusCode::kUnauthenticated},
      {403, StatusCode::kPermissionDenied},
      {404, StatusCode::kNotFound},
      {408, StatusCode::kUnavailable},
      {409, StatusCode::kAborted},
      {412, StatusCode::kAborted},
      {413, StatusCode::kInvalidArgument},
      {416, StatusCode::kOutOfRange},
      {429, StatusCode::kResourceExhausted},
      {500, StatusCode::kUnavailable},
      {501, StatusCode::kUnimplemented},
      {503, StatusCode::kUnavailable},
      {504, StatusCode::kDeadlineExceeded},
      {418, StatusCode::kUnknown},
      {99, StatusCode::kUnknown},
  };
  for (const auto& [status, code] : table) {
    EXPECT_EQ(StatusOf({.status = status}).code(), code) << status;
  }
}

TEST(StatusOf, TheMessageIsOneShortPrintableLine) {
  const std::string message =
      Message(StatusOf({.status = 500, .body = "no\nroom\x01left\n" + std::string(9999, ' ')}));
  EXPECT_EQ(message, "HTTP 500: no room left");
  EXPECT_LE(Message(StatusOf({.status = 500, .body = std::string(9999, 'x')})).size(), 500U);
  EXPECT_EQ(Message(StatusOf({.status = 404})), "HTTP 404");
}

}  // namespace
}  // namespace cachewarm::http
