// SPDX-License-Identifier: Apache-2.0
#include "lib/base/hex.h"

#include "gtest/gtest.h"

namespace cachewarm {
namespace {

TEST(Hex, OnlyLowerCaseHexDigitsAreAccepted) {
  EXPECT_TRUE(IsLowerHex(""));
  EXPECT_TRUE(IsLowerHex("0123456789abcdef"));
  for (const char* text : {"A", "0g", " 0", "0-1", "0x1"}) {
    EXPECT_FALSE(IsLowerHex(text)) << text;
  }
}

}  // namespace
}  // namespace cachewarm
