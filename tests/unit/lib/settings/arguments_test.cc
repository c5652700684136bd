// SPDX-License-Identifier: Apache-2.0
#include "lib/settings/arguments.h"

#include <array>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cachewarm::settings {
namespace {

absl::Status CheckShort(const std::string& value) {
  return value.size() < 4 ? absl::OkStatus() : absl::InvalidArgumentError("is too long");
}

constexpr std::array<Option, 6> kOptions = {
    {{.name = "count", .value = "N", .help = "", .range = Range{1, 16}},
     {.name = "short", .value = "TEXT", .help = "", .repeats = true, .check = &CheckShort},
     {.name = "elect", .value = "BOOL", .help = "", .is_switch = true},
     {.name = "json", .help = "", .letter = 'j'},
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

TEST(Arguments, EmptyValueOfACheckedOptionCountsAsNotGiven) {
  const auto parsed = Parse({"--count=", "--short", "", "--short=abc"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_FALSE(parsed->Has("count"));
  EXPECT_EQ(parsed->Number("count", 7), 7);
  EXPECT_EQ(parsed->Values("short"), Words{"abc"});
}

TEST(Arguments, ErrorsNameTheOption) {
  const struct {
    Words words;
    std::string message;
  } cases[] = {{{"--nope"}, "--nope: unknown option; --help lists all options"},
               {{"--flie"}, "--flie: unknown option; did you mean --file?"},
               {{"--file"}, "--file: requires a value: --file FILE"},
               {{"-f"}, "-f: requires a value: -f FILE"},
               {{"-x"}, "-x: unknown option; --help lists all options"},
               {{"--count=0"}, "--count: \"0\" is not a whole number from 1 to 16"},
               {{"--count", "17"}, "--count: \"17\" is not a whole number from 1 to 16"},
               {{"--count", "many"}, "--count: \"many\" is not a whole number from 1 to 16"},
               {{"--short=a", "--short=four"}, "--short: is too long"},
               {{"--elect", "--elect"}, "--elect: may be given only once"},
               {{"-f", "a", "--file=b"}, "--file: may be given only once"},
               {{"--json=yes"}, "--json: takes no value"},
               {{"--file=a", "--file=b"}, "--file: may be given only once"}};
  for (const auto& c : cases) {
    const auto parsed = Parse(c.words);
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status()));
    EXPECT_THAT(std::string(parsed.status().message()), ::testing::HasSubstr(c.message));
  }
}

TEST(Arguments, NumberIsTheDefaultUnlessGiven) {
  EXPECT_EQ(Parse({"--count", "16"})->Number("count", 7), 16);
  EXPECT_EQ(Parse({"--count="})->Number("count", 7), 7);
  EXPECT_EQ(Parse({})->Number("count", 7), 7);
}

TEST(Arguments, SwitchWithoutAValueIsTrueAndTakesNoWord) {
  const auto alone = Parse({"--elect", "false"});
  EXPECT_EQ(alone->Value("elect"), "true");
  EXPECT_EQ(alone->positionals(), (Words{"false"}));
  EXPECT_EQ(Parse({"--elect=false"})->Value("elect"), "false");
}

TEST(Arguments, SuggestionIsTheNearestName) {
  const Words names = {"--store", "--sign-key", "--key", "--registry-mirrors"};
  const struct {
    std::string word;
    std::string suggestion;
  } cases[] = {{"--stor", "did you mean --store?"},
               {"--stoer", "did you mean --store?"},
               {"--sign-kye", "did you mean --sign-key?"},
               {"--regisrty-miror", "did you mean --registry-mirrors?"},
               {"--ky", "did you mean --key?"},
               {"--directory", "none"},
               {"--" + std::string(5000, 'x'), "none"},
               {"", "none"}};
  for (const auto& each : cases) {
    EXPECT_EQ(Suggestion(each.word, names, "none"), each.suggestion) << each.word;
  }
}

TEST(Arguments, TextIsWrappedAtBlanks) {
  const std::string word(50, 'x');
  EXPECT_EQ(Wrapped(word + " " + word, 6), word + "\n      " + word);
  EXPECT_EQ(Wrapped(word, 6), word);
  EXPECT_EQ(Wrapped("", 6), "");
  const std::string lengthy(200, 'y');
  EXPECT_EQ(Wrapped(lengthy + " z", 2), lengthy + "\n  z");
  EXPECT_EQ(Wrapped(lengthy, 2), lengthy);
  const std::string full(90, 'x');
  EXPECT_EQ(Wrapped(full, 0), full);
  EXPECT_EQ(Wrapped(full + " z", 0), full + "\nz");
}

}  // namespace
}  // namespace cachewarm::settings
