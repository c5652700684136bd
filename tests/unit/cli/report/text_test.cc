// SPDX-License-Identifier: Apache-2.0
#include "cli/report/text.h"

#include <random>

#include "gtest/gtest.h"
#include "lib/base/utf8.h"

namespace cachewarm::cli::report {
namespace {

TEST(ReportText, MarkupIsEscaped) {
  EXPECT_EQ(Shown("<a href=\"x\">&'</a>", 80), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;&lt;/a&gt;");
}

TEST(ReportText, LongTextLosesItsMiddle) {
  EXPECT_EQ(Shown("registry.example.com/team/llama:1", 33), "registry.example.com/team/llama:1");
  EXPECT_EQ(Shown("registry.example.com/team/llama:1", 14), "registry…ma:1");
  EXPECT_EQ(Shown("abcdef", 2), "…");
  EXPECT_EQ(Shown("", 5), "");
}

TEST(ReportText, CharactersOutsideAsciiCountAsTwoColumns) {
  EXPECT_EQ(Shown("日本語", 6), "日本語");
  EXPECT_EQ(Shown("日本語日本語", 8), "日本…語");
}

TEST(ReportText, DeceptiveCharactersAreReplaced) {
  for (const std::string text :
       {"\x01", "\x7f", "\xC2\x85", "\xE2\x80\xAE", "\xE2\x81\xA6", "\xE2\x80\x8B", "\xEF\xBB\xBF",
        "\xEF\xBF\xBE", "\xF3\xA0\x80\x81", "\xFF", "\xC0"}) {
    EXPECT_EQ(Shown(text, 10), "�") << ::testing::PrintToString(text);
  }
  EXPECT_EQ(Shown("a\nb\tc\rd", 10), "a b c d");
  EXPECT_EQ(Shown(std::string_view("a\0b", 3), 10), "a�b");
}

TEST(ReportText, AnyBytesBecomeShortPlainText) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same bytes in every run
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 60, '\0');
    for (char& byte : bytes) {
      byte = static_cast<char>(random());
    }
    const std::string shown = Shown(bytes, 20);
    EXPECT_TRUE(IsUtf8(shown));
    EXPECT_LE(shown.size(), 20U * 6);
    for (const char c : shown) {
      EXPECT_TRUE(c != '<' && c != '>' && c != '"' && c != '\'' && (c < 0 || c >= 0x20));
    }
  }
}

TEST(ReportText, CountsHaveSeparators) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatCount(-1000), "-1,000");
  EXPECT_EQ(FormatNumberOf(1, "start"), "1 start");
  EXPECT_EQ(FormatNumberOf(2000, "start"), "2,000 starts");
}

TEST(ReportText, SecondsAreShort) {
  EXPECT_EQ(FormatSeconds(0), "0s");
  EXPECT_EQ(FormatSeconds(-0.01), "0s");
  EXPECT_EQ(FormatSeconds(5.46), "5.5s");
  EXPECT_EQ(FormatSeconds(-5.46), "-5.5s");
  EXPECT_EQ(FormatSeconds(41.2), "41s");
  EXPECT_EQ(FormatSeconds(59.6), "1m00s");
  EXPECT_EQ(FormatSeconds(13260), "3h41m");
  EXPECT_EQ(FormatSeconds(-90), "-1m30s");
}

TEST(ReportText, OnlyAWholeIsAHundredPercent) {
  EXPECT_EQ(FormatShare(1, 0), "-");
  EXPECT_EQ(FormatShare(0, 5), "0%");
  EXPECT_EQ(FormatShare(5, 5), "100%");
  EXPECT_EQ(FormatShare(99999, 100000), "99.9%");
  EXPECT_EQ(FormatShare(1, 100000), "0.1%");
  EXPECT_EQ(FormatShare(1, 3), "33.3%");
}

}  // namespace
}  // namespace cachewarm::cli::report
