// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/reader.h"

#include <gmock/gmock.h>

#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::codec {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

Json Parse(const std::string& text) {
  absl::StatusOr<Json> value = ParseJson(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.value_or(Json());
}

struct Everything {
  std::string s = "default";
  bool b = true;
  int64_t i = 7;
  int n = 8;
  double d = 1.5;
  std::vector<std::string> list = {"kept"};
  std::map<std::string, std::string> map = {{"kept", "too"}};

  absl::Status ReadFrom(const Json& json) {
    Reader reader(json, "spec");
    reader.Read("s", s, 10).Read("b", b).Read("i", i, -10, 10).Read("n", n, 0, 100);
    reader.Read("d", d).Read("list", list, 3).Read("map", map, 2);
    return reader.status();
  }
};

TEST(Reader, ReadsEveryKindOfMember) {
  const Json json = Parse(
      R"({"s":"x","b":false,"i":-10,"n":100,"d":2,"list":["a","b"],"map":{"k":"v"},"more":1})");
  Everything read;
  ASSERT_TRUE(read.ReadFrom(json).ok());
  EXPECT_EQ(read.s, "x");
  EXPECT_FALSE(read.b);
  EXPECT_EQ(read.i, -10);
  EXPECT_EQ(read.n, 100);
  EXPECT_EQ(read.d, 2.0);
  EXPECT_THAT(read.list, ElementsAre("a", "b"));
  EXPECT_THAT(read.map, ElementsAre(Pair("k", "v")));
}

TEST(Reader, ReadsDigestsAndTimes) {
  const Digest digest = DigestOf("x");
  const Json json = Parse(R"({"digest":")" + digest.ToString() +
                          R"(","none":"","bad":"sha256:12","at":1700000000123,"then":"now"})");
  Reader reader(json, "spec");
  Digest read;
  Digest kept = digest;
  WallTime at;
  reader.Read("digest", read).Read("none", kept).Read("absent", kept).ReadMilliseconds("at", at);
  ASSERT_TRUE(reader.status().ok()) << reader.status();
  EXPECT_EQ(read, digest);
  EXPECT_EQ(kept, digest);
  EXPECT_EQ(at, WallTime(Duration(1'700'000'000'123)));
  EXPECT_THAT(std::string(Reader(json, "spec").Read("bad", read).status().message()),
              ::testing::StartsWith("spec.bad: \"sha256:12\" is not a digest"));
  EXPECT_EQ(Reader(json, "spec").ReadMilliseconds("then", at).status().message(),
            "spec.then: expected an integer");
}

TEST(Reader, AbsentAndNullKeepTheDefault) {
  for (const char* text :
       {"{}", R"({"s":null,"b":null,"i":null,"n":null,"d":null,"list":null,"map":null})"}) {
    Everything read;
    ASSERT_TRUE(read.ReadFrom(Parse(text)).ok());
    EXPECT_EQ(read.s, "default");
    EXPECT_TRUE(read.b);
    EXPECT_EQ(read.i, 7);
    EXPECT_EQ(read.n, 8);
    EXPECT_EQ(read.d, 1.5);
    EXPECT_THAT(read.list, ElementsAre("kept"));
    EXPECT_THAT(read.map, ElementsAre(Pair("kept", "too")));
  }
}

TEST(Reader, ErrorsNameTheFullPath) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"s":5})", "spec.s: expected a string"},
      {R"({"s":"12345678901"})", "spec.s: longer than 10 bytes"},
      {R"({"b":"true"})", "spec.b: expected true or false"},
      {R"({"b":1})", "spec.b: expected true or false"},
      {R"({"i":1.0})", "spec.i: expected an integer"},
      {R"({"i":"1"})", "spec.i: expected an integer"},
      {R"({"i":18446744073709551615})", "spec.i: expected an integer"},
      {R"({"i":11})", "spec.i: 11 is not between -10 and 10"},
      {R"({"n":-1})", "spec.n: -1 is not between 0 and 100"},
      {R"({"n":4294967296})", "spec.n: 4294967296 is not between 0 and 100"},
      {R"({"d":"x"})", "spec.d: expected a number"},
      {R"({"list":"a"})", "spec.list: expected a list of at most 3 strings"},
      {R"({"list":["a","b","c","d"]})", "spec.list: expected a list of at most 3 strings"},
      {R"({"list":["a",1]})", "spec.list: expected a list of strings"},
      {R"({"map":["a"]})", "spec.map: expected a map of at most 2 strings"},
      {R"({"map":{"a":"","b":"","c":""}})", "spec.map: expected a map of at most 2 strings"},
      {R"({"map":{"a":1}})", "spec.map: expected a map of strings"},
      {"[]", "spec: expected an object"},
      {"null", "spec: expected an object"},
      {"5", "spec: expected an object"},
  };
  for (const auto& [text, message] : cases) {
    const absl::Status status = Everything().ReadFrom(Parse(text));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_EQ(std::string(status.message()), message);
  }
}

TEST(Reader, ReadsTimesAndDigests) {
  const std::string hex(64, 'a');
  const Json json = Parse(R"({"t":"1970-01-01T00:00:01.5Z","d":"sha256:)" + hex + R"("})");
  WallTime time{};
  Digest digest;
  EXPECT_TRUE(Reader(json, "spec").Read("t", time).Read("d", digest).status().ok());
  EXPECT_EQ(time, WallTime(Duration(1500)));
  EXPECT_EQ(digest.hex(), hex);
}

TEST(Reader, TimesAndDigestsThatAreAbsentOrEmptyKeepTheirValues) {
  for (const char* text : {"{}", R"({"t":null,"d":null})", R"({"t":"","d":""})"}) {
    const Json json = Parse(text);
    WallTime time(Duration(7));
    Digest digest = DigestOf("x");
    EXPECT_TRUE(Reader(json, "spec").Read("t", time).Read("d", digest).status().ok()) << text;
    EXPECT_EQ(time, WallTime(Duration(7)));
    EXPECT_EQ(digest, DigestOf("x"));
  }
}

TEST(Reader, TimesAndDigestsOfAnotherFormAreRejected) {
  WallTime time{};
  Digest digest;
  const Json json = Parse(R"({"t":"now","n":1,"l":")" + std::string(129, '0') + R"("})");
  EXPECT_THAT(std::string(Reader(json, "s").Read("t", time).status().message()),
              testing::StartsWith("s.t: \"now\" is not an RFC 3339 time"));
  EXPECT_THAT(std::string(Reader(json, "s").Read("t", digest).status().message()),
              testing::StartsWith("s.t: "));
  EXPECT_EQ(Reader(json, "s").Read("n", time).status().message(), "s.n: expected a string");
  EXPECT_EQ(Reader(json, "s").Read("l", time).status().message(), "s.l: longer than 64 bytes");
  EXPECT_EQ(Reader(json, "s").Read("l", digest).status().message(), "s.l: longer than 128 bytes");
}

TEST(Reader, StringsOfListsAndMapsAreBounded) {
  const Json json = Parse(R"({"l":["ab","abc"],"m":{"k":"abc"}})");
  std::vector<std::string> list;
  std::map<std::string, std::string> map;
  EXPECT_TRUE(Reader(json, "s").Read("l", list, 2, 3).Read("m", map, 1, 3).status().ok());
  EXPECT_EQ(Reader(json, "s").Read("l", list, 2, 2).status().message(),
            "s.l: has a string longer than 2 bytes");
  EXPECT_EQ(Reader(json, "s").Read("m", map, 1, 2).status().message(),
            "s.m: has a string longer than 2 bytes");
}

TEST(Reader, KeepsTheFirstError) {
  EXPECT_EQ(std::string(Everything().ReadFrom(Parse(R"({"s":5,"b":5})")).message()),
            "spec.s: expected a string");
}

TEST(Reader, RootErrorsHaveNoPath) {
  const Json list = Parse("[]");
  EXPECT_EQ(Reader(list, "").status().message(), "document: expected an object");
  const Json json = Parse(R"({"a":{"b":1}})");
  Reader reader(json, "");
  std::string out;
  reader.Object("a", [&](Reader& a) { a.Read("b", out); });
  EXPECT_EQ(std::string(reader.status().message()), "a.b: expected a string");
}

TEST(Reader, RequireRejectsEmptyString) {
  for (const char* text : {"{}", R"({"a":null})", R"({"a":""})"}) {
    const Json json = Parse(text);
    Reader reader(json, "x");
    reader.Require("a");
    EXPECT_EQ(std::string(reader.status().message()), "x.a: is required") << text;
  }
  for (const char* text : {R"({"a":"b"})", R"({"a":0})", R"({"a":false})", R"({"a":[]})"}) {
    const Json json = Parse(text);
    EXPECT_TRUE(Reader(json, "x").Require("a").status().ok()) << text;
  }
}

TEST(Reader, WalksObjectsAndLists) {
  const Json json = Parse(R"({"o":{"n":1},"l":[{"n":2},{"n":3}]})");
  Reader reader(json, "spec");
  std::vector<int> numbers;
  const auto take = [&numbers](Reader& member) {
    int number = 0;
    member.Read("n", number, 0, 9);
    numbers.push_back(number);
  };
  reader.Object("o", take).List("l", 2, take).Object("absent", take).List("gone", 2, take);
  EXPECT_TRUE(reader.status().ok());
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3));
}

TEST(Reader, NestedErrorsNameIndexAndMember) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"l":[{"n":1},{"n":"x"}]})", "spec.l[1].n: expected an integer"},
      {R"({"l":[{"n":1},5]})", "spec.l[1]: expected an object"},
      {R"({"l":{}})", "spec.l: expected a list of at most 3 items"},
      {R"({"l":[{},{},{},{}]})", "spec.l: expected a list of at most 3 items"},
  };
  for (const auto& [text, message] : cases) {
    const Json json = Parse(text);
    Reader reader(json, "spec");
    int calls = 0;
    reader.List("l", 3, [&calls](Reader& item) {
      int number = 0;
      item.Read("n", number, 0, 9);
      ++calls;
    });
    EXPECT_EQ(std::string(reader.status().message()), message);
    EXPECT_LE(calls, 2);
  }
}

TEST(Reader, CallerCanFailAMember) {
  const Json json = Parse(R"({"a":{"b":"x"}})");
  Reader reader(json, "spec");
  reader.Object("a", [](Reader& a) { a.Fail("b", "is taken; choose another"); });
  EXPECT_EQ(std::string(reader.status().message()), "spec.a.b: is taken; choose another");
}

TEST(Reader, MembersOutsideAClosedListAreRejected) {
  const Json json = Parse(R"({"a":1,"b":2})");
  Reader reader(json, "spec");
  EXPECT_TRUE(reader.Only({"a", "b", "c"}).status().ok());
  reader.Only({"a", "c"});
  EXPECT_EQ(std::string(reader.status().message()), "spec.b: unknown field; expected one of a, c");
}

TEST(Reader, ReturnsRawMembers) {
  const Json json = Parse(R"({"a":[1],"n":null})");
  const Reader reader(json, "x");
  EXPECT_TRUE(reader.Has("a"));
  EXPECT_FALSE(reader.Has("n"));
  EXPECT_FALSE(reader.Has("b"));
  ASSERT_NE(reader.Member("a"), nullptr);
  EXPECT_EQ(reader.Member("a")->size(), 1U);
  EXPECT_EQ(reader.Member("n"), nullptr);
  EXPECT_EQ(reader.PathOf("a"), "x.a");
}

}  // namespace
}  // namespace cachewarm::codec
