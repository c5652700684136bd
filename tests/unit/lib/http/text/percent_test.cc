// SPDX-License-Identifier: Apache-2.0
#include "lib/http/text/percent.h"

#include <gtest/gtest.h>

namespace cachewarm::http {
namespace {

TEST(PercentEncode, EscapesAllButUnreservedCharacters) {
  EXPECT_EQ(PercentEncode(""), "");
  EXPECT_EQ(PercentEncode("AZaz09-._~"), "AZaz09-._~");
  EXPECT_EQ(PercentEncode("a b/c?d=e&f%g+h"), "a%20b%2Fc%3Fd%3De%26f%25g%2Bh");
  EXPECT_EQ(PercentEncode(std::string_view("\0\xff\n", 3)), "%00%FF%0A");
  EXPECT_EQ(PercentEncode("../x"), "..%2Fx");
}

}  // namespace
}  // namespace cachewarm::http
