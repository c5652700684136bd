// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/yaml.h"

#include <gmock/gmock.h>

#include <random>

#include "lib/base/utf8.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::codec {
namespace {

using ::testing::HasSubstr;

std::string AsJson(const std::string& yaml) {
  const absl::StatusOr<Json> value = ParseYaml(yaml);
  EXPECT_TRUE(value.ok()) << yaml << ": " << value.status();
  return value.ok() ? DumpJson(*value) : "";
}

TEST(ParseYaml, ResolvesPlainScalarsByCoreSchema) {
  const std::pair<const char*, const char*> cases[] = {
      {"a: ~", "null"},
      {"a: null", "null"},
      {"a:", "null"},
      {"a: Null", "null"},
      {"a: nULL", "\"nULL\""},
      {"a: true", "true"},
      {"a: FALSE", "false"},
      {"a: yes", "\"yes\""},
      {"a: on", "\"on\""},
      {"a: 5", "5"},
      {"a: -5", "-5"},
      {"a: +5", "5"},
      {"a: 010", "10"},
      {"a: 1.5", "1.5"},
      {"a: 1e3", "1000.0"},
      {"a: -.5", "-0.5"},
      {"a: 0x1F", "31"},
      {"a: 0o17", "15"},
      {"a: +-5", "\"+-5\""},
      {"a: 1_000", "\"1_000\""},
      {"a: '5'", "\"5\""},
      {"a: \"true\"", "\"true\""},
      {"a: !!str 5", "\"5\""},
      {"a: .inf", "\".inf\""},
      {"a: .nan", "\".nan\""},
      {"a: 1.2.3", "\"1.2.3\""},
      {"a: '-'", "\"-\""},
      {"a: 2026-11-21", "\"2026-11-21\""},
      {"a: 1e999", "\"1e999\""},
      {"a: e", "\"e\""},
      {"a: 0x", "\"0x\""},
      {"a: 0xfg", "\"0xfg\""},
      {"a: 9223372036854775807", "9223372036854775807"},
  };
  for (const auto& [yaml, json] : cases) {
    EXPECT_EQ(AsJson(yaml), std::string("{\"a\":") + json + "}") << yaml;
  }
}

TEST(ParseYaml, ReadsNestedBlocksFlowsAndText) {
  EXPECT_EQ(AsJson("a:\n  - b: 1\n    c: [x, {y: 2}]\n  - |\n    two\n    lines\n  - >-\n    one\n"
                   "    line\n"),
            R"({"a":[{"b":1,"c":["x",{"y":2}]},"two\nlines\n","one line"]})");
  EXPECT_EQ(AsJson(R"({"json": ["is", "yaml", 1, null]})"), R"({"json":["is","yaml",1,null]})");
  EXPECT_EQ(AsJson("[]"), "[]");
  EXPECT_EQ(AsJson("{}"), "{}");
  EXPECT_EQ(AsJson("just text"), "\"just text\"");
}

TEST(ParseYaml, FollowsAliases) {
  EXPECT_EQ(AsJson("a: &x {k: v}\nb: *x\n"), R"({"a":{"k":"v"},"b":{"k":"v"}})");
}

TEST(ParseYaml, KeysAreStrings) {
  EXPECT_EQ(AsJson("1: a\ntrue: b\n"), R"({"1":"a","true":"b"})");
  for (const char* bad : {"? [a]\n: b\n", "? {a: b}\n: c\n", "~: x\n"}) {
    EXPECT_THAT(std::string(ParseYaml(bad).status().message()), HasSubstr("key")) << bad;
  }
}

TEST(ParseYaml, ErrorsNameLineAndColumn) {
  EXPECT_THAT(std::string(ParseYaml("a: 1\nb: [1, 2\n").status().message()),
              HasSubstr("malformed YAML at line"));
  EXPECT_THAT(std::string(ParseYaml("a: 1\nb:\n  c: 1\n  c: 2\n").status().message()),
              HasSubstr("line 4 column 3: duplicate key \"c\""));
  for (const char* bad : {"a: 'open", "a: [", "a: *nowhere", "a: b: c", "- a\nb: c", "%x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseYaml(bad).status())) << bad;
  }
}

TEST(ParseYaml, RequiresExactlyOneDocument) {
  EXPECT_THAT(std::string(ParseYaml("").status().message()), HasSubstr("found 0"));
  EXPECT_THAT(std::string(ParseYaml("a: 1\n---\nb: 2\n").status().message()), HasSubstr("found 2"));
  EXPECT_TRUE(ParseYaml("---\na: 1\n---\n").ok());
}

TEST(ParseYamlStream, LeavesEmptyDocumentsOut) {
  const auto documents = ParseYamlStream("---\na: 1\n---\n---\n# nothing\n---\nb: 2\n");
  ASSERT_TRUE(documents.ok()) << documents.status();
  ASSERT_EQ(documents->size(), 2U);
  EXPECT_EQ(DumpJson(documents->at(1)), R"({"b":2})");
  EXPECT_TRUE(ParseYamlStream("")->empty());
}

TEST(ParseYaml, IsBounded) {
  EXPECT_THAT(std::string(ParseYaml("a: 1", {.bytes_max = 3}).status().message()),
              HasSubstr("4 bytes is over the limit of 3"));
  EXPECT_TRUE(ParseYaml("[[1]]", {.depth_max = 2}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ParseYaml("[[1]]", {.depth_max = 1}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseYaml("[1, 2, 3]", {.nodes_max = 3}).status()));
  for (const char open : {'[', '{'}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseYaml(std::string(100'000, open)).status()));
  }
}

// yaml-cpp 0.7 reports empty nodes forever after an unmatched closing bracket.
TEST(ParseYaml, RejectsInputThatHangsTheParser) {
  for (const char* endless : {"{}},x", "{\"a\":[1]},true],\"b\":{}}}"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseYamlStream(endless, {.nodes_max = 1000}).status()))
        << endless;
  }
}

TEST(ParseYaml, StopsABillionLaughs) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) {
      bomb += (j == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    }
    bomb += "]\n";
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ParseYaml(bomb, {.nodes_max = 10'000}).status()));
}

TEST(ParseYaml, StopsAtAnAliasOfItself) {
  EXPECT_TRUE(absl::IsInvalidArgument(ParseYaml("&a [*a]").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseYaml("&a {k: *a}").status()));
}

TEST(ParseYaml, RejectsInvalidUtf8) {
  EXPECT_THAT(std::string(ParseYaml("a: \xff\xfe").status().message()), HasSubstr("UTF-8"));
  EXPECT_EQ(AsJson("größe: 核"), R"({"größe":"核"})");
}

TEST(ParseYaml, SurvivesDamagedTexts) {
  const std::string good =
      "apiVersion: v1\nkind: Config\nclusters:\n- name: &n a\n  cluster: {server: 'https://x:1',"
      " ca: \"YWJj\"}\nusers: [*n, {token: |\n  abc\n}]\n---\nx: !!str 5\n";
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (int flips = 0; flips < 3; ++flips) {
      bad[random() % bad.size()] = static_cast<char>(random() % 128);
    }
    bad.resize(random() % (bad.size() + 1));
    const auto documents = ParseYamlStream(bad);
    if (documents.ok()) {
      for (const Json& document : *documents) {
        EXPECT_TRUE(IsUtf8(DumpJson(document)));
      }
    }
  }
}

TEST(DumpYaml, WritesBlocksWithSortedMembers) {
  const Json value = {{"spec", {{"list", {{{"b", 1}, {"a", "x y"}}, "text"}}, {"none", nullptr}}},
                      {"empty", Json::array()},
                      {"nested", {{1, 2}}}};
  EXPECT_EQ(DumpYaml(value),
            "empty: []\nnested:\n  -\n    - 1\n    - 2\nspec:\n  list:\n    - a: \"x y\"\n"
            "      b: 1\n    - text\n  none: null\n");
}

TEST(DumpYaml, ParsesToTheSameValue) {
  Json texts = Json::array();
  for (const char* text :
       {"",     "true", "Yes", "no",  "ON",   "off",  "y",  "N",     "null",       "~",    "1",
        "0x1f", "1.5",  "-",   "- a", "a: b", "a #b", "'",  "\"",    "\n",         "a\tb", "\x01",
        "核",   "&a",   "*a",  "!a",  "%a",   "@a",   "`a", "plain", "2026-11-26", "12:30"}) {
    texts.push_back(text);
  }
  const Json value = {{"texts", texts}, {"on", true}, {"1", 1}, {"a b", {{"y", -1.5}}}};
  const auto parsed = ParseYaml(DumpYaml(value));
  ASSERT_TRUE(parsed.ok()) << parsed.status() << DumpYaml(value);
  EXPECT_EQ(*parsed, value);
  EXPECT_EQ(DumpYaml("a b"), "\"a b\"\n");
  EXPECT_EQ(DumpYaml({{"a", "\xff"}}), "a: \"\xef\xbf\xbd\"\n");
}

TEST(DumpYaml, QuotesWhatReadersOfYaml11TakeForBooleans) {
  EXPECT_EQ(DumpYaml({{"a", "yes"}, {"b", "Off"}, {"c", "n"}, {"d", "nodes"}}),
            "a: \"yes\"\nb: \"Off\"\nc: \"n\"\nd: nodes\n");
}

}  // namespace
}  // namespace cachewarm::codec
