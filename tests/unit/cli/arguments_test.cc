// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <array>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cachewarm::cli {
namespace {

constexpr std::array<Option, 3> kOptions = {
    {{.name = "json", .help = "", .letter = 'j'},
     {.name = "file", .value = "FILE", .help = "", .letter = 'f'},
     {.name = "host", .value = "HOST", .help = "", .repeats = true}}};

absl::StatusOr<Arguments> Parse(const std::vector<std::string>& words) {
  return Arguments::Parse(words, kOptions);
}

using Words = std::vector<std::string>;

TEST(Arguments, OptionsAndOperandsMayBeMixed) {
  const auto parsed = Parse({"one", "--file", "f", "two", "--json", "--host=a", "--host", "b"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->positionals(), (Words{"one", "two"}));
  EXPECT_EQ(parsed->Value("file"), "f");
  EXPECT_TRUE(parsed->Has("json"));
  EXPECT_EQ(parsed->Values("host"), (Words{"a", "b"}));
}

TEST(Arguments, OptionMayHaveShortForm) {
  const auto parsed = Parse({"-f", "a", "-j", "one"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->Value("file"), "a");
  EXPECT_TRUE(parsed->Has("json"));
  EXPECT_EQ(parsed->positionals(), (Words{"one"}));
  EXPECT_EQ(Parse({"-", "-1x"})->positionals(), (Words{"-", "-1x"}));
}

TEST(Arguments, WordsAfterDoubleDashAreNotParsed) {
  const auto parsed = Parse({"--json", "--", "vllm", "serve", "--file", "--"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->rest(), (Words{"vllm", "serve", "--file", "--"}));
  EXPECT_TRUE(parsed->positionals().empty());
}

TEST(Arguments, ValueMayBeEmptyOrContainEqualsSign) {
  EXPECT_EQ(Parse({"--file="})->Value("file", "x"), "");
  EXPECT_EQ(Parse({"--file=a=b"})->Value("file"), "a=b");
  EXPECT_EQ(Parse({})->Value("file", "x"), "x");
}

TEST(Arguments, ErrorsNameTheOption) {
  const struct {
    Words words;
    std::string message;
  } cases[] = {{{"--nope"}, "--nope: unknown option"},
               {{"--file"}, "--file: requires a value: FILE"},
               {{"-f"}, "-f: requires a value: FILE"},
               {{"-x"}, "-x: unknown option"},
               {{"-f", "a", "--file=b"}, "--file: may be given only once"},
               {{"--json=yes"}, "--json: takes no value"},
               {{"--file=a", "--file=b"}, "--file: may be given only once"}};
  for (const auto& c : cases) {
    const auto parsed = Parse(c.words);
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status()));
    EXPECT_THAT(std::string(parsed.status().message()), ::testing::HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace cachewarm::cli
