// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/json.h"

#include <gmock/gmock.h>

#include <random>

#include "lib/base/utf8.h"
#include "lib/codec/json_items.h"
#include "lib/codec/json_value.h"

namespace cachewarm::codec {
namespace {

using ::testing::HasSubstr;

TEST(ParseJson, ReadsEveryKindOfValue) {
  const absl::StatusOr<Json> value =
      ParseJson(R"({"s":"x","i":-5,"u":18446744073709551615,"d":1.5,"b":true,"n":null,"l":[1]})");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ((*value)["s"], "x");
  EXPECT_EQ((*value)["i"], -5);
  EXPECT_EQ((*value)["u"].get<uint64_t>(), UINT64_MAX);
  EXPECT_TRUE((*value)["n"].is_null());
  EXPECT_EQ((*value)["l"].size(), 1U);
}

TEST(ParseJson, ErrorsNameThePosition) {
  for (const char* bad :
       {"", " ", "{", "[1,]", "{\"a\":1,}", "{a:1}", "nul", "01", "\"\n\"", "\"\xff\"", "\"\\x\"",
        "1 2", "{} x", "'a'", "NaN", "[1e999]", "-1e999", "\"\\ud800\""}) {
    const absl::Status status = ParseJson(bad).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("malformed JSON")) << bad;
  }
  EXPECT_THAT(std::string(ParseJson("{\"a\":x}").status().message()), HasSubstr("at byte 6"));
}

TEST(ParseJson, LimitsBytesAndDepth) {
  EXPECT_THAT(std::string(ParseJson("[1,2,3]", {.bytes_max = 6}).status().message()),
              HasSubstr("7 bytes is over the limit of 6"));
  EXPECT_TRUE(ParseJson("[[[]]]", {.depth_max = 3}).ok());
  EXPECT_THAT(std::string(ParseJson("[[[]]]", {.depth_max = 2}).status().message()),
              HasSubstr("deeper than 2"));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseJson(std::string(10'000'000, '[')).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseJson(std::string(1'000'000, '{')).status()));
}

TEST(ParseJson, LimitsNumberOfValues) {
  std::string many = "[";
  for (int i = 0; i < 1'000; ++i) {
    many += "{},";
  }
  many += "{}]";
  EXPECT_THAT(std::string(ParseJson(many, {.values_max = 2'002}).status().message()),
              HasSubstr("JSON of 2003 values is over the limit of 2002"));
  EXPECT_TRUE(ParseJson(many, {.values_max = 2'003}).ok());
  const std::string text = "[\"" + std::string(3'000, ',') + "\"]";
  EXPECT_TRUE(ParseJson(text, {.values_max = 10}).ok()) << "commas inside a text do not count";
}

TEST(ParseJson, PrunesDeepValuesIfRequested) {
  const JsonLimits limits{.depth_max = 3, .prune = true};
  const Json json =
      *ParseJson(R"({"a":{"b":{"c":{"d":["]\""]},"e":1,"f":[[2]]}},"g":[[[3],4]]})", limits);
  EXPECT_EQ(json, Json::parse(R"({"a":{"b":{"c":null,"e":1,"f":null}},"g":[[null,4]]})"));
  EXPECT_TRUE(ParseJson(std::string(100'000, '[') + std::string(100'000, ']'), limits).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ParseJson(std::string(100'000, '['), limits).status()));
}

TEST(ParseJson, BracketsInStringsDoNotCountAsDepth) {
  EXPECT_TRUE(ParseJson(R"(["[[[[", "{\"{", "\\"])", {.depth_max = 1}).ok());
}

TEST(DumpJson, IsCompactAndAlwaysUtf8) {
  EXPECT_EQ(DumpJson({{"b", 1}, {"a", {1, 2}}}), R"({"a":[1,2],"b":1})");
  const std::string text = DumpJson(Json("bad \xff name"));
  EXPECT_TRUE(IsUtf8(text));
  EXPECT_EQ(text, "\"bad \xEF\xBF\xBD name\"");
}

TEST(CanonicalJson, SortsMembersByBytes) {
  const absl::StatusOr<Json> value = ParseJson(R"({"b":{"z":1,"a":2},"a":[3,1],"é":0,"B":1})");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(CanonicalJson(*value).value(), R"({"B":1,"a":[3,1],"b":{"a":2,"z":1},"é":0})");
}

TEST(CanonicalJson, DoesNotDependOnInputFormatting) {
  const auto canonical = [](const char* text) { return CanonicalJson(*ParseJson(text)).value(); };
  EXPECT_EQ(canonical(R"({"a":1,"b":[ ]})"), canonical("{ \"b\" : [], \"a\" : 1 }"));
  EXPECT_EQ(canonical(R"("\u0041\/")"), canonical(R"("A/")"));
}

TEST(CanonicalJson, RejectsValuesWithoutCanonicalForm) {
  EXPECT_TRUE(absl::IsInvalidArgument(CanonicalJson(Json(1.5)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(CanonicalJson({{"a", {1, {{"b", 0.0}}}}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(CanonicalJson(Json("\xff")).status()));
  EXPECT_TRUE(CanonicalJson(Json(INT64_MIN)).ok());
}

TEST(Texts, ReturnsStringMembers) {
  const Json object = {{"a", "1"}, {"b", 2}, {"c", nullptr}, {"d", {{"e", "f"}}}, {"g", ""}};
  EXPECT_EQ(Texts(&object), (std::map<std::string, std::string>{{"a", "1"}, {"g", ""}}));
  const Json list = {"a", "b"};
  const Json text = "a";
  EXPECT_TRUE(Texts(&list).empty());
  EXPECT_TRUE(Texts(&text).empty());
  EXPECT_TRUE(Texts(nullptr).empty());
}

TEST(ParseJson, SurvivesDamagedTexts) {
  const std::string good =
      R"({"metadata":{"name":"x","labels":{"a":"b"}},"spec":{"n":[1,-2,3.5e10,null,true]}})";
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    std::string bad = good;
    for (int flips = 0; flips < 3; ++flips) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    const absl::StatusOr<Json> value = ParseJson(bad.substr(0, random() % (bad.size() + 1)));
    if (value.ok()) {
      EXPECT_TRUE(IsUtf8(DumpJson(*value)));
    }
  }
}

class ParseJsonItemsTest : public testing::Test {
 protected:
  absl::StatusOr<Json> Parse(std::string_view text, const JsonLimits& limits = {}) {
    return ParseJsonItems(
        text, {.list = "items", .unread = "managedFields"},
        [this](Json item) { items_.push_back(std::move(item)); }, limits);
  }
  std::vector<Json> items_;
};

TEST_F(ParseJsonItemsTest, PassesItemsAndReturnsTheRest) {
  const auto rest = Parse(R"({"kind":"PodList","metadata":{"continue":"c","more":{"a":{}}},
      "items":[{"metadata":{"name":"a","labels":{"x":"y"}},"list":[{"b":1}]},{"c":2}],
      "after":{}})");
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(*rest, Json::parse(R"({"kind":"PodList","metadata":{"continue":"c","more":{"a":{}}},
      "items":[],"after":{}})"));
  ASSERT_EQ(items_.size(), 2U);
  EXPECT_EQ(items_[0],
            Json::parse(R"({"metadata":{"name":"a","labels":{"x":"y"}},"list":[{"b":1}]})"));
  EXPECT_EQ(items_[1], Json::parse(R"({"c":2})"));
}

TEST_F(ParseJsonItemsTest, SkipsUnreadMembersAtAnyDepth) {
  ASSERT_TRUE(Parse(R"({"items":[{"metadata":{"name":"a","managedFields":[{"f":{"x":{}}}]}},
      {"managedFields":1,"b":2}],"managedFields":{}})")
                  .ok());
  EXPECT_EQ(items_, (std::vector<Json>{{{"metadata", {{"name", "a"}}}}, {{"b", 2}}}));
}

TEST_F(ParseJsonItemsTest, KeepsNonListMember) {
  EXPECT_EQ(*Parse(R"({"items":null})"), Json::parse(R"({"items":null})"));
  EXPECT_EQ(*Parse(R"({"items":"x"})"), Json::parse(R"({"items":"x"})"));
  EXPECT_EQ(*Parse(R"({"other":[{"a":{"items":[{}]}}]})"),
            Json::parse(R"({"other":[{"a":{"items":[{}]}}]})"));
  EXPECT_EQ(*Parse("[1]"), Json::array({1}));
  EXPECT_TRUE(items_.empty());
}

TEST_F(ParseJsonItemsTest, SkipsItemsThatAreNotObjects) {
  EXPECT_EQ(*Parse(R"({"items":[1,"a",[{}]]})"), Json::parse(R"({"items":[1,"a",[{}]]})"));
  EXPECT_TRUE(items_.empty());
}

TEST_F(ParseJsonItemsTest, ErrorsNameThePositionInItems) {
  const auto status = Parse(R"({"items":[{"a":1},{"b":)").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(items_.size(), 1U) << "items before the error are passed";
  EXPECT_FALSE(Parse("").ok());
  EXPECT_FALSE(Parse("{}", {.bytes_max = 1}).ok());
  EXPECT_FALSE(Parse(R"({"items":[{"a":[[[1]]]}]})", {.depth_max = 4}).ok());
}

}  // namespace
}  // namespace cachewarm::codec
