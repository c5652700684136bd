// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/tab_line.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cachewarm::codec {
namespace {

using ::testing::HasSubstr;

TEST(TabLine, ReadsFieldsInOrder) {
  const Digest digest = DigestOf("x");
  const std::string text = "a path\t-5\t" + digest.hex();
  TabLine line(text);
  EXPECT_EQ(line.Text("path", 10), "a path");
  EXPECT_EQ(line.Number("offset", INT64_MIN), -5);
  EXPECT_TRUE(line.has_more());
  EXPECT_EQ(line.Sha256("sha256"), digest);
  EXPECT_FALSE(line.has_more());
  EXPECT_TRUE(line.status().ok()) << line.status();
}

TEST(TabLine, RemembersTheFirstError) {
  TabLine line("\tx");
  line.Text("path", 10);
  line.Number("size", 0);
  line.Fail("kind", "is unknown");
  EXPECT_TRUE(absl::IsInvalidArgument(line.status()));
  EXPECT_EQ(line.status().message(), "path: expected 1 to 10 bytes, found 0");
}

TEST(TabLine, RejectsInvalidNumbersAndDigests) {
  for (const char* text : {"x", "1x", "+1", "0x1", "1.5", "-1", "9999999999999999999", ""}) {
    TabLine line(text);
    line.Number("size", 0);
    EXPECT_THAT(std::string(line.status().message()), HasSubstr("size: expected")) << text;
  }
  for (const std::string& text : {std::string(63, 'a'), std::string(64, 'G')}) {
    TabLine line(text);
    line.Sha256("sha256");
    EXPECT_EQ(line.status().message(), "sha256: expected 64 lower-case hex digits") << text;
  }
  TabLine over("11");
  over.Number("size", 0, 10);
  EXPECT_EQ(over.status().message(), "size: expected an integer, 0 to 10");
  TabLine most("9223372036854775807");
  EXPECT_EQ(most.Number("size", 0), INT64_MAX);
  EXPECT_TRUE(most.status().ok());
}

TEST(TabLine, ReadingPastTheLastFieldFails) {
  TabLine line("a");
  line.Text("path", 10);
  line.Number("size", 0);
  EXPECT_EQ(line.status().message(), "size: is missing");
}

}  // namespace
}  // namespace cachewarm::codec
