// SPDX-License-Identifier: Apache-2.0
#include "lib/base/status.h"

#include <gtest/gtest.h>

#include "lib/http/client.h"

namespace cachewarm::http {
namespace {

TEST(StatusOf, MapsHttpStatusToCode) {
  EXPECT_TRUE(StatusOf({.status = 206}).ok());
  EXPECT_TRUE(absl::IsUnimplemented(StatusOf({.status = 405})));
  EXPECT_TRUE(absl::IsUnavailable(StatusOf({.status = 503})));
}

TEST(StatusOf, MessageIsOneShortPrintableLine) {
  const std::string message =
      Message(StatusOf({.status = 500, .body = "no\nroom\x01left\n" + std::string(9999, ' ')}));
  EXPECT_EQ(message, "HTTP 500: no room left");
  EXPECT_LE(Message(StatusOf({.status = 500, .body = std::string(9999, 'x')})).size(), 500U);
  EXPECT_EQ(Message(StatusOf({.status = 404})), "HTTP 404");
}

}  // namespace
}  // namespace cachewarm::http
