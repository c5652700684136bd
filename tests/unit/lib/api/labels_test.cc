// SPDX-License-Identifier: Apache-2.0
#include "lib/api/labels.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace cachewarm::api {
namespace {

using std::string_literals::operator""s;

TEST(Labels, ReturnTheirEntries) {
  const std::string longest(300'000, 'x');  // more than the 256 KiB of annotations
  const Labels::Texts cases[] = {
      {},
      {{"", ""}},
      {{"a", ""}},
      {{"", "a"}},
      {{"kubernetes.io/hostname", "node-a"}, {"kubernetes.io/os", "linux"}},
      {{"a\0b"s, "\0"s}, {"a\0"s, "\0\0"s}, {"\0"s, "x"}},
      {{std::string(127, 'k'), std::string(128, 'v')}, {std::string(128, 'k'), "v"}},
      {{longest, longest}, {"y", longest}},
      {{"\xff\x80", "\x80\x80"}, {"ö", "ü"}},
  };
  for (const Labels::Texts& each : cases) {
    const Labels labels = each;
    EXPECT_EQ(labels.AsMap(), each);
    EXPECT_EQ(labels.empty(), each.empty());
    for (const auto& [name, value] : each) {
      const auto found = labels.find(name);
      ASSERT_NE(found, labels.end());
      EXPECT_EQ(found->first, name);
      EXPECT_EQ(found->second, value);
    }
  }
}

TEST(Labels, IterateInTheOrderOfNames) {
  const Labels labels = {{"b", "2"}, {"a", "1"}, {"ab", "3"}};
  std::vector<std::string> names;
  for (const auto& [name, value] : labels) {
    names.emplace_back(name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a", "ab", "b"}));
}

TEST(Labels, DoNotMatchSimilarNames) {
  const Labels labels = {{"app", "llama"}, {"tier", "gpu"}};
  for (const char* name : {"", "ap", "app2", "appllama", "llama", "b", "tie", "tiers", "z"}) {
    EXPECT_FALSE(labels.contains(name)) << name;
    EXPECT_EQ(labels.find(name), labels.end()) << name;
  }
  EXPECT_FALSE(Labels().contains(""));
}

TEST(Labels, KeepTheFirstOfEqualNames) {
  const Labels labels = {{"app", "llama"}, {"app", "other"}};
  EXPECT_EQ(labels.AsMap(), (Labels::Texts{{"app", "llama"}}));
}

TEST(Labels, AreEqualWithEqualEntries) {
  const Labels labels = {{"a", "1"}, {"b", "2"}};
  EXPECT_EQ(labels, (Labels{{"b", "2"}, {"a", "1"}}));
  EXPECT_NE(labels, (Labels{{"a", "1"}}));
  EXPECT_NE((Labels{{"a", "bc"}}), (Labels{{"ab", "c"}}));
}

TEST(Labels, CopiesOwnTheirStrings) {
  Labels labels = {{"a", std::string(100, '1')}};
  const Labels copy = labels;
  labels = {};
  EXPECT_EQ(copy.find("a")->second, std::string(100, '1'));
}

TEST(Labels, ShareEqualNames) {
  const Labels known = {{"a", "1"}, {"b", "2"}};
  Labels labels = {{"a", ""}, {"b", std::string(200, 'v')}};
  ASSERT_NE(labels.begin()->first.data(), known.begin()->first.data());
  EXPECT_TRUE(labels.ShareNames(known));
  EXPECT_EQ(labels.begin()->first.data(), known.begin()->first.data());
  EXPECT_EQ(labels.AsMap(), (Labels::Texts{{"a", ""}, {"b", std::string(200, 'v')}}));
  EXPECT_EQ(known.AsMap(), (Labels::Texts{{"a", "1"}, {"b", "2"}}));
}

TEST(Labels, DoNotShareDifferentNames) {
  for (const Labels& known : {Labels(), Labels{{"a", "1"}}, Labels{{"a", "1"}, {"c", "2"}}}) {
    Labels labels = {{"a", "1"}, {"b", "2"}};
    EXPECT_FALSE(labels.ShareNames(known));
    EXPECT_EQ(labels, (Labels{{"a", "1"}, {"b", "2"}}));
  }
  Labels none;
  EXPECT_TRUE(none.ShareNames(Labels()));
  EXPECT_TRUE(none.empty());
}

TEST(Labels, OutliveTheLabelsTheyShareNamesWith) {
  Labels labels = {{"a", "1"}};
  labels.ShareNames(Labels{{"a", "2"}});
  EXPECT_EQ(labels.find("a")->second, "1");
}

TEST(HasLabels, RequiresEveryWantedLabel) {
  const Labels labels = {{"app", "llama"}, {"tier", "gpu"}, {"zone", ""}};
  EXPECT_TRUE(HasLabels(labels, {}));
  EXPECT_TRUE(HasLabels(labels, {{"tier", "gpu"}}));
  EXPECT_TRUE(HasLabels(labels, labels.AsMap()));
  EXPECT_FALSE(HasLabels(labels, {{"tier", "cpu"}}));
  EXPECT_FALSE(HasLabels(labels, {{"app", "llama"}, {"team", "a"}}));
  EXPECT_FALSE(HasLabels(labels, {{"other", ""}}));
  EXPECT_FALSE(HasLabels(Labels(), {{"app", "llama"}}));
}

}  // namespace
}  // namespace cachewarm::api
