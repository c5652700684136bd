// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/fetching/fetch_slots.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::At;
using fakes::SnapshotBuilder;

// `nodes` nodes of one type, a published bundle that none of them has, and a cap.
class FetchSlots : public testing::Test {
 protected:
  void Cluster(int nodes, int cap) {
    for (int i = 0; i < nodes; ++i) {
      builder.Node({.name = "n" + std::to_string(i)});
    }
    builder.Accepted();
    builder.Bundle({.node = "n0", .active = {}});
    builder.in().settings.fetch_nodes_max = cap;
  }

  // Plans and writes as the operator would; what was written.
  std::set<std::string> PlanContext() {
    const Plan plan = builder.Decide();
    builder.status() = plan.status;
    std::set<std::string> written;
    for (const NodeEntries& wants : plan.nodes) {
      auto& warmups = builder.cache(wants.node).spec.warmups;
      std::erase_if(warmups, [](const auto& entry) { return entry.uid == "7d0f"; });
      warmups.insert(warmups.end(), wants.spec.warmups.begin(), wants.spec.warmups.end());
      written.insert(wants.node);
    }
    return written;
  }

  const api::WantedWarmup* Entry(const std::string& node) {
    for (const api::WantedWarmup& entry : builder.cache(node).spec.warmups) {
      if (entry.uid == "7d0f") {
        return &entry;
      }
    }
    return nullptr;
  }

  std::set<std::string> Told() {
    std::set<std::string> out;
    for (const NodeView& view : builder.in().nodes) {
      const api::WantedWarmup* entry = Entry(view.node->meta.name);
      if (entry != nullptr && !entry->bundles.empty()) {
        out.insert(view.node->meta.name);
      }
    }
    return out;
  }

  void DryRunResult(const std::string& node, api::BundleState state,
                    const std::string& reason = "DiskFull") {
    builder.reported(node).bundles = {
        {.digest = fakes::DigestNamed("a"), .state = state, .reason = reason}};
  }

  // Another warmup has told these nodes to fetch something.
  void Elsewhere(const std::string& node, int since) {
    builder.cache(node).spec.warmups.push_back(
        {.uid = "other",
         .bundles = {{.key = "k", .digest = fakes::DigestNamed("f"), .bytes = 1}},
         .fetch_granted_time = At(since)});
  }

  SnapshotBuilder builder;
};

TEST_F(FetchSlots, NoMoreNodesAreToldThanMayFetch) {
  Cluster(10, 3);
  EXPECT_EQ(PlanContext().size(), 10U) << "directories are asked for everywhere";
  EXPECT_EQ(Told().size(), 3U);
  const api::BundleStatus& bundle = builder.status().bundles[0];
  EXPECT_EQ(bundle.nodes_desired, 10);
  EXPECT_EQ(bundle.nodes_waiting, 7);
  EXPECT_EQ(bundle.message,
            "7 nodes wait for a fetch slot: at most 3 nodes fetch at the same time (fetch.nodesMax)");
}

TEST_F(FetchSlots, PlanningAgainWritesNothing) {
  Cluster(10, 3);
  PlanContext();
  EXPECT_TRUE(PlanContext().empty());
  const Plan plan = builder.Decide();
  EXPECT_FALSE(plan.status_changed);
  ASSERT_TRUE(plan.requeue_after.has_value());
  EXPECT_LE(*plan.requeue_after, std::chrono::seconds(5)) << "turns elsewhere end silently";
}

TEST_F(FetchSlots, ANodeThatHasAnsweredMakesRoomForTheNext) {
  Cluster(6, 1);
  std::set<std::string> before;
  for (size_t turn = 1; turn <= 6; ++turn) {
    PlanContext();
    const std::set<std::string> told = Told();
    ASSERT_EQ(told.size(), turn);
    for (const std::string& node : told) {
      if (!before.contains(node)) {
        DryRunResult(node, turn % 2 == 0 ? api::BundleState::kActive : api::BundleState::kFailed);
      }
    }
    before = told;
  }
  PlanContext();
  EXPECT_EQ(builder.status().bundles[0].nodes_waiting, 0);
}

TEST_F(FetchSlots, WhatOtherWarmupsFetchCountsOncePerNode) {
  Cluster(8, 4);
  Elsewhere("n0", 90);
  Elsewhere("n0", 95);
  Elsewhere("n1", 95);
  builder.Now(100);
  PlanContext();
  // Two turns are left for nodes that fetch nothing; of n0 and n1 each fetches anyway.
  const std::set<std::string> told = Told();
  EXPECT_TRUE(told.contains("n0") && told.contains("n1"));
  EXPECT_LE(told.size(), 4U);
  EXPECT_GE(told.size(), 3U);
}

TEST_F(FetchSlots, AFetchThatNeverEndsBlocksOthersOnlyForItsTime) {
  Cluster(4, 1);
  Elsewhere("n3", 100);
  builder.Now(101);
  PlanContext();
  EXPECT_EQ(Told(), std::set<std::string>{"n3"}) << "it fetches anyway";
  builder.Now(100 + 122);
  PlanContext();
  EXPECT_EQ(Told().size(), 2U);
}

TEST_F(FetchSlots, WhileTheStoreIsOffNodesKeepTheirTurnsForTheirTime) {
  Cluster(10, 3);
  builder.Now(100);
  for (int second = 100; second < 220; second += 20) {
    builder.Now(second);
    PlanContext();
    for (const std::string& node : Told()) {
      DryRunResult(node, api::BundleState::kFailed, "FetchFailed");
    }
    ASSERT_EQ(Told().size(), 3U) << "all others would ask at once when the store is back";
  }
  builder.Now(100 + 122);
  PlanContext();
  EXPECT_EQ(Told().size(), 6U);
}

TEST_F(FetchSlots, ALargeBundleHasASecondForEachMebibyte) {
  Cluster(2, 1);
  builder.Now(100);
  PlanContext();
  const std::string first = *Told().begin();
  builder.cache(first).spec.warmups[0].bundles[0].bytes = int64_t{600} << 20;
  builder.Now(100 + 600);
  PlanContext();
  EXPECT_EQ(Told().size(), 1U);
  builder.Now(100 + 721);
  PlanContext();
  EXPECT_EQ(Told().size(), 2U);
}

TEST_F(FetchSlots, ADeadAgentNeitherHasATurnNorKeepsOne) {
  Cluster(3, 1);
  for (const char* node : {"n0", "n1"}) {
    builder.view(node).agent_ready = false;
  }
  Elsewhere("n0", 99);
  builder.Now(100);
  PlanContext();
  EXPECT_EQ(Told(), std::set<std::string>{"n2"});
  EXPECT_EQ(builder.status().bundles[0].nodes_waiting, 0) << "nobody there waits for a turn";
}

TEST_F(FetchSlots, AnAgentThatHasJustReportedNeedNotBeReadyYet) {
  Cluster(1, 1);
  builder.view("n0").agent_ready = false;
  builder.cache("n0").status.heartbeat = At(95);
  builder.Now(100);
  PlanContext();
  EXPECT_EQ(Told(), std::set<std::string>{"n0"});
}

TEST_F(FetchSlots, TheNodeOfABoundPodGoesFirstThenThatOfAHeldOne) {
  Cluster(12, 1);
  for (int i = 0; i < 12; ++i) {
    builder.view("n" + std::to_string(i)).free["pods"] = i == 7 ? 5 : 0;
  }
  builder.Pod({.name = "held", .held = true, .created = 99});
  builder.Now(100);
  PlanContext();
  EXPECT_EQ(Told(), std::set<std::string>{"n7"}) << "the only one with room";
  EXPECT_EQ(Entry("n7")->fetch_priority, api::kFetchPriorityHeld);
  EXPECT_EQ(Entry("n7")->fetch_granted_time, At(100));
  DryRunResult("n7", api::BundleState::kActive);
  builder.Pod({.name = "bound", .node = "n4", .created = 99});
  PlanContext();
  EXPECT_EQ(Told(), (std::set<std::string>{"n4", "n7"}));
  EXPECT_EQ(Entry("n4")->fetch_priority, api::kFetchPriorityBound);
}

TEST_F(FetchSlots, AFreshNodeThatAPodWaitsForIsNeededThoughItsStartupTaintKeepsThePodOff) {
  Cluster(12, 1);
  for (int i = 0; i < 12; ++i) {
    builder.view("n" + std::to_string(i)).free["pods"] = i == 7 ? 5 : 0;
  }
  builder.node("n7").taints = {{.key = "cachewarm.io/warming", .effect = "NoSchedule"}};
  builder.Pod({.name = "pending", .created = 99});
  builder.Now(100);
  PlanContext();
  EXPECT_EQ(Told(), std::set<std::string>{"n7"});
  EXPECT_EQ(Entry("n7")->fetch_priority, api::kFetchPriorityHeld);
}

TEST_F(FetchSlots, AQuarterOfTheTurnsIsKeptForNodesThatPodsWaitFor) {
  Cluster(12, 4);
  builder.Now(100);
  PlanContext();
  EXPECT_EQ(Told().size(), 3U);
  std::string other;
  for (const NodeView& view : builder.in().nodes) {
    other = Told().contains(view.node->meta.name) ? other : view.node->meta.name;
  }
  builder.Pod({.name = "bound", .node = other, .created = 99});
  PlanContext();
  EXPECT_EQ(Told().size(), 4U);
  EXPECT_TRUE(Told().contains(other));
}

TEST_F(FetchSlots, NeedOfANodeThatFetchesGrowsAndIsNotTakenBack) {
  Cluster(1, 1);
  builder.Now(100);
  PlanContext();
  EXPECT_EQ(Entry("n0")->fetch_priority, api::kFetchPriorityNone);
  builder.Pod({.name = "bound", .node = "n0", .created = 99});
  EXPECT_EQ(PlanContext().size(), 1U);
  EXPECT_EQ(Entry("n0")->fetch_priority, api::kFetchPriorityBound);
  builder.in().pods.clear();
  DryRunResult("n0", api::BundleState::kActive);
  EXPECT_TRUE(PlanContext().empty()) << "no write only to say that nobody waits any more";
}

TEST_F(FetchSlots, OnlyAsManyNodesAreNeededAsPodsWait) {
  Cluster(10, 10);
  for (int i = 0; i < 3; ++i) {
    builder.Pod({.name = "p" + std::to_string(i), .held = true, .created = 99});
  }
  builder.Now(100);
  PlanContext();
  int needed = 0;
  for (const std::string& node : Told()) {
    needed += Entry(node)->fetch_priority == api::kFetchPriorityHeld ? 1 : 0;
  }
  EXPECT_EQ(needed, 3);
}

TEST_F(FetchSlots, ANodeKeepsWhatItHasUntilItsTurnForTheNextBundle) {
  Cluster(3, 8);
  PlanContext();
  for (const char* node : {"n0", "n1", "n2"}) {
    DryRunResult(node, api::BundleState::kActive);
  }
  builder.Bundle({.node = "n0", .image = "server:2", .digest = "b", .published = 9});
  builder.pod_template()["spec"]["containers"][0]["image"] = "server:2";
  builder.in().settings.fetch_nodes_max = 1;
  PlanContext();
  int both = 0;
  for (const char* node : {"n0", "n1", "n2"}) {
    const auto& bundles = Entry(node)->bundles;
    EXPECT_TRUE(std::any_of(bundles.begin(), bundles.end(), [](const auto& each) {
      return each.digest == fakes::DigestNamed("a");
    })) << node;
    both += bundles.size() == 2 ? 1 : 0;
  }
  EXPECT_EQ(both, 1);
}

TEST_F(FetchSlots, TheOrderDoesNotFollowTheNames) {
  Cluster(40, 8);
  PlanContext();
  std::set<std::string> first_eight;
  for (int i = 0; i < 6; ++i) {
    first_eight.insert("n" + std::to_string(i));
  }
  EXPECT_EQ(Told().size(), 6U);
  EXPECT_NE(Told(), first_eight);
}

}  // namespace
}  // namespace cachewarm::plan
