// SPDX-License-Identifier: Apache-2.0
#include "lib/base/utf8.h"

#include <gtest/gtest.h>

namespace cachewarm {
namespace {

TEST(IsUtf8, AcceptsWellFormedSequences) {
  for (const char* good :
       {"", "ascii\x01\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a\xe2\x82\xac z"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  EXPECT_TRUE(IsUtf8(std::string_view("\0", 1)));
}

TEST(IsUtf8, RejectsOverlongSurrogateAndTruncatedSequences) {
  for (const char* bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x80\x80", "\xe0\x9f\xbf",
        "\xe2\x82", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xfe", "\xff", "ok\xf0\x90\x80"}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
  }
}

TEST(Utf8SequenceLength, CountsBytes) {
  EXPECT_EQ(Utf8SequenceLength("a", 0), 1U);
  EXPECT_EQ(Utf8SequenceLength("\xc3\xa4", 0), 2U);
  EXPECT_EQ(Utf8SequenceLength("\xe2\x82\xac", 0), 3U);
  EXPECT_EQ(Utf8SequenceLength("\xf0\x9f\x98\x80", 0), 4U);
  EXPECT_EQ(Utf8SequenceLength("\xc3\xa4", 1), 0U);
}

TEST(HasAsciiControl, FindsOnlyControlCharactersOfAscii) {
  for (const std::string_view with : {std::string_view("a\0b", 3), std::string_view("\x1f"),
                                      std::string_view("line\n"), std::string_view("\x7f")}) {
    EXPECT_TRUE(HasAsciiControl(with)) << with;
  }
  for (const char* without : {"", " ~", "\xc2\x80", "\xff"}) {
    EXPECT_FALSE(HasAsciiControl(without)) << without;
  }
}

}  // namespace
}  // namespace cachewarm
