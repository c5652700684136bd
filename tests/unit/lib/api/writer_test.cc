// SPDX-License-Identifier: Apache-2.0
#include "lib/api/json/writer.h"

#include <gtest/gtest.h>

#include <limits>

#include "lib/api/json/checks.h"

namespace cachewarm::api::json {
namespace {

using codec::Json;

WallTime At(int64_t millis) {
  return WallTime(Duration(millis));
}

TEST(Writer, OmitsEmptyAndZeroValues) {
  const Json made = Writer()
                        .Put("text", "", 10)
                        .Put("whole", int64_t{0})
                        .Put("seconds", 0.0)
                        .Put("time", WallTime{})
                        .Put("digest", Digest())
                        .Put("list", std::vector<std::string>{}, 4)
                        .Put("map", std::map<std::string, std::string>{})
                        .PutPart("part", Json::object())
                        .PutPart("nothing", nullptr)
                        .Take();
  EXPECT_EQ(made, Json::object());
}

TEST(Writer, AlwaysWritesRequiredMembers) {
  EXPECT_EQ(Writer().Always("gate", false).Always("env", Json::array()).Take(),
            (Json{{"gate", false}, {"env", Json::array()}}));
}

TEST(Writer, WholeSecondsAreIntegers) {
  struct Case {
    double seconds;
    Json written;
  };
  const Case cases[] = {
      {12.0, 12}, {12.5, 12.5}, {-3.25, -3.25}, {1.23456, 1.235}, {0.1 + 0.2, 0.3}, {29.9999, 30},
  };
  for (const Case& each : cases) {
    const Json made = Writer().Put("s", each.seconds).Take();
    EXPECT_EQ(made["s"], each.written);
    EXPECT_EQ(made["s"].is_number_integer(), each.written.is_number_integer());
  }
}

TEST(Writer, OmitsSecondsThatAreNotFinite) {
  for (double seconds : {std::numeric_limits<double>::infinity(),
                         std::numeric_limits<double>::quiet_NaN(), 1e300, 0.0001}) {
    EXPECT_EQ(Writer().Put("s", seconds).Take(), Json::object()) << seconds;
  }
}

TEST(Writer, TimesHaveMillisecondsOnlyIfNotZero) {
  EXPECT_EQ(Writer().Put("t", At(1'000)).Take()["t"], "1970-01-01T00:00:01Z");
  EXPECT_EQ(Writer().Put("t", At(1'250)).Take()["t"], "1970-01-01T00:00:01.250000Z");
}

TEST(Writer, CutDoesNotSplitACharacter) {
  const std::string text = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80";  // 1 + 2 + 3 + 4 bytes
  const std::vector<size_t> lengths = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (size_t most = 0; most < lengths.size(); ++most) {
    EXPECT_EQ(Cut(text, most).size(), lengths[most]) << most;
  }
}

TEST(Writer, ListsKeepTheirNewestItems) {
  const std::vector<std::string> items = {"a", "b", "c"};
  EXPECT_EQ(Writer().Put("l", items, 2).Take()["l"], (Json{"b", "c"}));
  EXPECT_EQ(Writer().Put("l", items, 3).Take()["l"], (Json{"a", "b", "c"}));
}

struct CheckCase {
  Pattern pattern;
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

TEST(Checks, AcceptOnlyWhatTheSchemaAccepts) {
  const std::vector<CheckCase> cases = {
      {IsDnsLabel,
       {"a", "a-b", "0", std::string(63, 'a')},
       {"", "-a", "a-", "A", "a.b", "a/b", std::string(64, 'a')}},
      {IsDnsSubdomain,
       {"a", "a.b-c.d0", std::string(253, 'a')},
       {"", ".", "a.", ".a", "a..b", "a/b", "..", std::string(254, 'a')}},
      {IsUid,
       {"0b9c1a52-8f7e-4c1a-9d63-5e1a2b3c4d5e", "A1"},
       {"", "..", "a/b", "a.b", "a b", std::string(65, 'a')}},
      {IsRunAs, {"image", "u0", "u1000", "u4294967295"}, {"", "u", "root", "u-1", "u1/..", "1000"}},
      {IsKey,
       {std::string(64, 'a'), std::string(64, '0')},
       {"", std::string(63, 'a'), std::string(65, 'a'), std::string(64, 'A'),
        std::string(64, 'g')}},
      {IsEnvName,
       {"A", "_a9", "TRITON_CACHE_DIR"},
       {"", "9A", "A-B", "A=B", std::string(129, 'A')}},
      {IsRelativePath,
       {"a", "a/b", "a.b/c_d-e", "..a", "a.."},
       {"", "/a", "a/", "a//b", ".", "..", "a/../b", "a/.", "a b", "a\n", std::string(129, 'a')}},
  };
  for (const CheckCase& each : cases) {
    for (const std::string& text : each.good) {
      EXPECT_TRUE(each.pattern(text)) << text;
    }
    for (const std::string& text : each.bad) {
      EXPECT_FALSE(each.pattern(text)) << text;
    }
  }
}

}  // namespace
}  // namespace cachewarm::api::json
