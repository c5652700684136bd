// SPDX-License-Identifier: Apache-2.0
#include "cli/run/output_tap.h"

#include "gtest/gtest.h"

namespace cachewarm::cli {
namespace {

LineMatcher Matcher(const std::string& pattern) {
  return LineMatcher(*Pattern::Parse(pattern));
}

TEST(LineMatcher, FindsALineThatArrivesInPieces) {
  LineMatcher matcher = Matcher("^Application startup (complete|done)\\.$");
  EXPECT_FALSE(matcher.Feed("loading\nApplication sta"));
  EXPECT_FALSE(matcher.Feed("rtup complete."));
  EXPECT_TRUE(matcher.Feed("\n"));
  EXPECT_FALSE(matcher.Feed("Application startup\ncomplete.\n")) << "two lines";
}

TEST(LineMatcher, CarriageReturnAndEndOfOutputEndALine) {
  LineMatcher matcher = Matcher("^ready$");
  EXPECT_TRUE(matcher.Feed("50 %\rready\r\n"));
  EXPECT_FALSE(matcher.Feed("ready"));
  EXPECT_TRUE(matcher.Finish());
  EXPECT_FALSE(matcher.Finish());
}

TEST(LineMatcher, EndlessLineAndBinaryBytesAreBounded) {
  LineMatcher matcher = Matcher("ready");
  EXPECT_FALSE(matcher.Feed(std::string(10'000'000, 'x')));
  EXPECT_FALSE(matcher.Feed(std::string("\0\xff\x01", 3)));
  EXPECT_TRUE(matcher.Feed("\nready\n"));
}

TEST(PatternTest, MalformedExpressionIsNamed) {
  const auto pattern = Pattern::Parse("(ready");
  EXPECT_TRUE(absl::IsInvalidArgument(pattern.status()));
  EXPECT_NE(std::string(pattern.status().message()).find("\"(ready\""), std::string::npos);
}

}  // namespace
}  // namespace cachewarm::cli
