// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/namespace_lanes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cachewarm::kube {
namespace {

class NamespaceLanesTest : public ::testing::Test {
 protected:
  // Takes all keys that may be processed.
  std::vector<std::string> TakeAll() {
    std::vector<std::string> taken;
    while (auto key = lanes.Take(now)) {
      taken.push_back(*key);
    }
    return taken;
  }
  void AddMany(const std::string& ns, int count) {
    for (int i = 0; i < count; ++i) {
      lanes.Add(ns + "/p" + std::to_string(i));
    }
  }
  // Makes `ns` slow: one key is processed for a second.
  void MakeSlow(const std::string& ns) {
    lanes.Add(ns + "/slow");
    ASSERT_EQ(lanes.Take(now), ns + "/slow");
    now += Duration(1'000);
    lanes.Done(ns + "/slow", now, true);
  }

  NamespaceLanes lanes{{.usual = 2, .slow = 8}};
  MonoTime now{};
};

TEST_F(NamespaceLanesTest, OldestKeyOfAnyNamespaceIsFirst) {
  for (const char* key : {"b/1", "a/1", "node", "Job/b/2"}) {
    lanes.Add(key);
  }
  EXPECT_EQ(lanes.waiting(), 4U);
  EXPECT_EQ(TakeAll(), (std::vector<std::string>{"b/1", "a/1"}));
  lanes.Done("b/1", now, true);
  EXPECT_EQ(TakeAll(), std::vector<std::string>{"node"});
  lanes.Done("a/1", now, true);
  EXPECT_EQ(TakeAll(), std::vector<std::string>{"Job/b/2"});
  EXPECT_EQ(lanes.processed(), 2U);
}

TEST_F(NamespaceLanesTest, KeyThatHangsLeavesTheUsualLane) {
  AddMany("team", 2);
  EXPECT_EQ(lanes.NextChange(), std::nullopt);
  EXPECT_EQ(TakeAll().size(), 2U);
  lanes.Add("default/a");
  EXPECT_EQ(lanes.Take(now), std::nullopt);
  EXPECT_EQ(lanes.NextChange(), now + NamespaceLanes::kSlowAfter);
  now += NamespaceLanes::kSlowAfter;
  EXPECT_EQ(lanes.Take(now), "default/a");
}

TEST_F(NamespaceLanesTest, SlowNamespaceGetsThreeQuartersOfTheSlowLane) {
  MakeSlow("team");
  AddMany("team", 20);
  EXPECT_EQ(TakeAll().size(), 6U);
  MakeSlow("other");
  AddMany("other", 20);
  EXPECT_EQ(TakeAll().size(), 2U) << "the rest of the lane";
  lanes.Done("team/p0", now, false);
  EXPECT_EQ(TakeAll(), std::vector<std::string>{"other/p2"}) << "until both have the same share";
}

TEST_F(NamespaceLanesTest, MoreSlowNamespacesThanThreadsGetOneEachInTurn) {
  const auto name = [](int i) { return "team" + std::to_string(i); };
  for (int i = 0; i < 20; ++i) {
    MakeSlow(name(i));
  }
  for (int i = 0; i < 20; ++i) {
    AddMany(name(i), 2);
  }
  std::vector<std::string> taken = TakeAll();
  ASSERT_EQ(taken.size(), 8U);
  for (size_t i = 0; i < taken.size(); ++i) {
    EXPECT_EQ(taken[i], name(static_cast<int>(i)) + "/p0");
  }
  lanes.Done("team0/p0", now, false);
  lanes.Add("team0/p0");
  EXPECT_EQ(TakeAll(), std::vector<std::string>{"team0/p1"}) << "the oldest key";
  AddMany("default", 2);
  EXPECT_EQ(TakeAll().size(), 2U) << "others have the usual lane";
}

TEST_F(NamespaceLanesTest, FastKeyThatSucceedsEndsTheSlowState) {
  for (const bool ok : {false, true}) {
    MakeSlow("team");
    lanes.Add("team/a");
    ASSERT_EQ(lanes.Take(now), "team/a");
    lanes.Done("team/a", now, ok);
    AddMany("team", 10);
    EXPECT_EQ(TakeAll().size(), ok ? 2U : 6U);
    for (int i = 0; i < 10; ++i) {
      lanes.Done("team/p" + std::to_string(i), now, ok);
      TakeAll();
    }
    ASSERT_EQ(lanes.processed(), 0U);
    now += std::chrono::minutes(10);
  }
}

TEST_F(NamespaceLanesTest, IdleNamespaceIsForgottenAfterTenMinutes) {
  MakeSlow("team");
  now += std::chrono::minutes(10);
  AddMany("team", 10);
  EXPECT_EQ(TakeAll().size(), 2U);
}

TEST(NamespaceLanes, WithoutLimitsEveryKeyIsTaken) {
  NamespaceLanes lanes({});
  for (int i = 0; i < 100; ++i) {
    lanes.Add("team/" + std::to_string(i));
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(lanes.Take(MonoTime(Duration(i * 1'000))), "team/" + std::to_string(i));
  }
}

}  // namespace
}  // namespace cachewarm::kube
