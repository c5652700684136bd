// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/distribution/fetch_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::At;
using fakes::SnapshotBuilder;

// `nodes` nodes of one type, a published bundle that none of them has, and a slot limit.
class FetchSlotsTest : public testing::Test {
 protected:
  void Cluster(int nodes, int cap) {
    for (int i = 0; i < nodes; ++i) {
      builder.Node({.name = "n" + std::to_string(i)});
    }
    builder.Accepted();
    builder.Bundle({.node = "n0", .active = {}});
    builder.in().settings.fetch_nodes_max = cap;
  }

  // Plans and applies; returns the written nodes.
  std::set<std::string> PlanOnce() {
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

  std::set<std::string> NodesWithBundle() {
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

  // Adds a fetch of another warmup on this node.
  void Elsewhere(const std::string& node, int since) {
    builder.cache(node).spec.warmups.push_back(
        {.uid = "other",
         .bundles = {{.key = "k", .digest = fakes::DigestNamed("f"), .bytes = 1}},
         .fetch_granted_time = At(since)});
  }

  SnapshotBuilder builder;
};

TEST_F(FetchSlotsTest, NodesWithSlotsStayWithinLimit) {
  Cluster(10, 3);
  EXPECT_EQ(PlanOnce().size(), 10U) << "directories are requested everywhere";
  EXPECT_EQ(NodesWithBundle().size(), 3U);
  const api::BundleStatus& bundle = builder.status().bundles[0];
  EXPECT_EQ(bundle.nodes_desired, 10);
  EXPECT_EQ(bundle.nodes_waiting, 7);
  EXPECT_EQ(
      bundle.message,
      "7 nodes wait for a fetch slot: at most 3 nodes fetch at the same time (fetch.nodesMax)");
}

TEST_F(FetchSlotsTest, PlanningAgainWritesNothing) {
  Cluster(10, 3);
  PlanOnce();
  EXPECT_TRUE(PlanOnce().empty());
  const Plan plan = builder.Decide();
  EXPECT_FALSE(plan.status_changed);
  ASSERT_TRUE(plan.requeue_after.has_value());
  EXPECT_LE(*plan.requeue_after, std::chrono::seconds(5))
      << "slots of other warmups end without an event";
}

TEST_F(FetchSlotsTest, FinishedNodeFreesItsSlot) {
  Cluster(6, 1);
  std::set<std::string> before;
  for (size_t turn = 1; turn <= 6; ++turn) {
    PlanOnce();
    const std::set<std::string> listed = NodesWithBundle();
    ASSERT_EQ(listed.size(), turn);
    for (const std::string& node : listed) {
      if (!before.contains(node)) {
        DryRunResult(node, turn % 2 == 0 ? api::BundleState::kActive : api::BundleState::kFailed);
      }
    }
    before = listed;
  }
  PlanOnce();
  EXPECT_EQ(builder.status().bundles[0].nodes_waiting, 0);
}

TEST_F(FetchSlotsTest, FetchesOfOtherWarmupsCountOncePerNode) {
  Cluster(8, 4);
  Elsewhere("n0", 90);
  Elsewhere("n0", 95);
  Elsewhere("n1", 95);
  builder.Now(100);
  PlanOnce();
  // Two slots are left for idle nodes; one of n0 and n1 fetches already.
  const std::set<std::string> listed = NodesWithBundle();
  EXPECT_TRUE(listed.contains("n0") && listed.contains("n1"));
  EXPECT_EQ(listed.size(), 4U);
}

TEST_F(FetchSlotsTest, HangingFetchLosesItsSlot) {
  Cluster(4, 1);
  Elsewhere("n3", 100);
  builder.Now(101);
  PlanOnce();
  EXPECT_EQ(NodesWithBundle(), std::set<std::string>{"n3"}) << "it is fetching already";
  builder.Now(100 + 122);
  PlanOnce();
  EXPECT_EQ(NodesWithBundle().size(), 2U);
}

TEST_F(FetchSlotsTest, NodesKeepSlotsDuringStoreOutage) {
  Cluster(10, 3);
  builder.Now(100);
  for (int second = 100; second < 220; second += 20) {
    builder.Now(second);
    PlanOnce();
    for (const std::string& node : NodesWithBundle()) {
      DryRunResult(node, api::BundleState::kFailed, "FetchFailed");
    }
    ASSERT_EQ(NodesWithBundle().size(), 3U)
        << "all others would retry at once when the store recovers";
  }
  builder.Now(100 + 122);
  PlanOnce();
  EXPECT_EQ(NodesWithBundle().size(), 6U);
}

TEST_F(FetchSlotsTest, LargeBundleExtendsSlot) {
  Cluster(2, 1);
  builder.Now(100);
  PlanOnce();
  const std::string first = *NodesWithBundle().begin();
  builder.cache(first).spec.warmups[0].bundles[0].bytes = int64_t{600} << 20;
  builder.Now(100 + 600);
  PlanOnce();
  EXPECT_EQ(NodesWithBundle().size(), 1U);
  builder.Now(100 + 721);
  PlanOnce();
  EXPECT_EQ(NodesWithBundle().size(), 2U);
}

TEST_F(FetchSlotsTest, DeadAgentHasNoSlot) {
  Cluster(3, 1);
  for (const char* node : {"n0", "n1"}) {
    builder.view(node).agent_ready = false;
  }
  Elsewhere("n0", 99);
  builder.Now(100);
  PlanOnce();
  EXPECT_EQ(NodesWithBundle(), std::set<std::string>{"n2"});
  EXPECT_EQ(builder.status().bundles[0].nodes_waiting, 0) << "no node there waits for a slot";
}

TEST_F(FetchSlotsTest, RecentlyReportingAgentCountsAsLive) {
  Cluster(1, 1);
  builder.view("n0").agent_ready = false;
  builder.cache("n0").status.heartbeat = At(95);
  builder.Now(100);
  PlanOnce();
  EXPECT_EQ(NodesWithBundle(), std::set<std::string>{"n0"});
}

TEST_F(FetchSlotsTest, NodesOfBoundPodsGoFirst) {
  Cluster(12, 1);
  builder.Pod({.name = "bound", .node = "n7", .created = 99});
  builder.Pod({.name = "runs", .node = "n3", .created = 90, .started = 95});
  builder.Now(100);
  PlanOnce();
  EXPECT_EQ(NodesWithBundle(), std::set<std::string>{"n7"});
  EXPECT_EQ(Entry("n7")->fetch_priority, api::kFetchPriorityBound);
  EXPECT_EQ(Entry("n7")->fetch_granted_time, At(100));
  DryRunResult("n7", api::BundleState::kActive);
  builder.Pod({.name = "second", .node = "n4", .created = 99});
  PlanOnce();
  EXPECT_EQ(NodesWithBundle(), (std::set<std::string>{"n4", "n7"}));
}

TEST_F(FetchSlotsTest, PriorityOfFetchingNodeOnlyGrows) {
  Cluster(1, 1);
  builder.Now(100);
  PlanOnce();
  EXPECT_EQ(Entry("n0")->fetch_priority, api::kFetchPriorityNone);
  builder.Pod({.name = "bound", .node = "n0", .created = 99});
  EXPECT_EQ(PlanOnce().size(), 1U);
  EXPECT_EQ(Entry("n0")->fetch_priority, api::kFetchPriorityBound);
  builder.in().pods.clear();
  DryRunResult("n0", api::BundleState::kActive);
  EXPECT_TRUE(PlanOnce().empty()) << "no write only to clear the priority";
}

TEST_F(FetchSlotsTest, NodeKeepsBundlesUntilItsSlot) {
  Cluster(3, 8);
  PlanOnce();
  for (const char* node : {"n0", "n1", "n2"}) {
    DryRunResult(node, api::BundleState::kActive);
  }
  builder.Bundle({.node = "n0", .image = "server:2", .digest = "b", .published = 9});
  builder.pod_template()["spec"]["containers"][0]["image"] = "server:2";
  builder.in().settings.fetch_nodes_max = 1;
  PlanOnce();
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

TEST_F(FetchSlotsTest, OrderIsIndependentOfNames) {
  Cluster(40, 8);
  PlanOnce();
  std::set<std::string> first_eight;
  for (int i = 0; i < 8; ++i) {
    first_eight.insert("n" + std::to_string(i));
  }
  EXPECT_EQ(NodesWithBundle().size(), 8U);
  EXPECT_NE(NodesWithBundle(), first_eight);
}

// Ten racks of ten nodes: the first nodes that fetch are spread over the racks, and another warmup
// begins with other nodes.
TEST_F(FetchSlotsTest, SlotsAreSpreadOverTheClusterAndDifferByWarmup) {
  Cluster(100, 32);
  PlanOnce();
  const std::set<std::string> first = NodesWithBundle();
  ASSERT_EQ(first.size(), 32U);
  std::map<std::string, int> by_rack;
  for (const std::string& node : first) {
    ++by_rack[node.size() == 2 ? "0" : node.substr(1, 1)];
  }
  EXPECT_GE(by_rack.size(), 8U);
  for (const auto& [rack, nodes] : by_rack) {
    EXPECT_LE(nodes, 7) << "nodes of rack " << rack;
  }
  builder = SnapshotBuilder();
  builder.in().warmup.uid = "another";
  Cluster(100, 32);
  PlanOnce();
  int both = 0;
  for (const NodeView& view : builder.in().nodes) {
    const auto& wanted = view.cache->spec.warmups;
    const bool has_slot = std::any_of(wanted.begin(), wanted.end(),
                                      [](const auto& each) { return !each.bundles.empty(); });
    both += has_slot && first.contains(view.node->meta.name) ? 1 : 0;
  }
  EXPECT_LE(both, 18) << "10 of 32 are expected by chance";
}

}  // namespace
}  // namespace cachewarm::plan
