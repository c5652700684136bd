// SPDX-License-Identifier: Apache-2.0
#include "lib/api/labels.h"

#include <string_view>

#include "gtest/gtest.h"

namespace cachewarm::api {
namespace {

TEST(Labels, AreFoundByViewsOfTheirNames) {
  const Labels labels = Labels::Texts{{"app", "llama"}, {"tier", "gpu"}};
  const std::string_view name = "tier";
  ASSERT_NE(labels.find(name), labels.end());
  EXPECT_EQ(labels.find(name)->second, "gpu");
  EXPECT_FALSE(labels.contains(name.substr(1)));
  EXPECT_EQ(labels.AsMap(), (Labels::Texts{{"app", "llama"}, {"tier", "gpu"}}));
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
