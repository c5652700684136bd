// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lib/api/names.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::At;
using fakes::EntriesOf;
using fakes::SnapshotBuilder;

std::vector<Digest> DigestsFor(const Plan& plan, const std::string& node) {
  std::vector<Digest> out;
  const NodeEntries* wants = EntriesOf(plan, node);
  if (wants != nullptr && !wants->spec.warmups.empty()) {
    for (const api::WantedBundle& bundle : wants->spec.warmups[0].bundles) {
      out.push_back(bundle.digest);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<Digest> Named(std::initializer_list<const char*> digits) {
  std::vector<Digest> out;
  for (const char* digit : digits) {
    out.push_back(fakes::DigestNamed(digit));
  }
  return out;
}

TEST(Distribution, DirectoriesAreRequestedBeforeAcceptance) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1", .prepared = false});
  const Plan plan = builder.Decide();
  ASSERT_NE(EntriesOf(plan, "n1"), nullptr);
  const api::WantedWarmup& entry = EntriesOf(plan, "n1")->spec.warmups.at(0);
  EXPECT_EQ(entry.uid, "7d0f");
  EXPECT_EQ(entry.ns, "models");
  EXPECT_EQ(entry.name, "llama");
  EXPECT_EQ(entry.run_as, std::vector<std::string>{"image"});
  EXPECT_TRUE(entry.bundles.empty());
}

TEST(Distribution, EveryFittingNodeGetsTheBundle) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"}).Node({.name = "n2"});
  builder.Accepted();
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.Node({.name = "joined", .prepared = false});
  const Plan plan = builder.Decide();
  for (const char* node : {"n1", "n2", "joined"}) {
    EXPECT_EQ(DigestsFor(plan, node), Named({"a"})) << node;
  }
}

TEST(Distribution, UnfitNodesGetNothing) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"}).Node({.name = "tainted"}).Node({.name = "other"});
  builder.node("tainted").taints = {{.key = "team", .value = "x", .effect = "NoSchedule"}};
  builder.pod_template()["spec"]["nodeSelector"] = {{"kubernetes.io/hostname", "n1"}};
  const Plan plan = builder.Decide();
  EXPECT_NE(EntriesOf(plan, "n1"), nullptr);
  EXPECT_EQ(EntriesOf(plan, "tainted"), nullptr);
  EXPECT_EQ(EntriesOf(plan, "other"), nullptr);
}

TEST(Distribution, CordonOrTransientTaintRemovesNothing) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"}).Node({.name = "n2"});
  builder.node("n1").unschedulable = true;
  builder.node("n2").taints = {
      {.key = "node.kubernetes.io/memory-pressure", .effect = "NoSchedule"}};
  const Plan plan = builder.Decide();
  EXPECT_NE(EntriesOf(plan, "n1"), nullptr);
  EXPECT_NE(EntriesOf(plan, "n2"), nullptr);
}

TEST(Distribution, GpuTypesAndNodeSelectorLimitBundlesButNotDirectories) {
  SnapshotBuilder builder;
  builder.Node({.name = "h", .gpu_type = fakes::kH100});
  builder.Node({.name = "h-other", .gpu_type = fakes::kH100, .labels = {{"pool", "b"}}});
  builder.Node({.name = "c"});
  builder.warmup().spec.gpu_types = {"nvidia/h100-80gb-hbm3"};
  builder.node("h").meta.labels = {{"pool", "a"}};
  builder.warmup().spec.node_selector = {{"pool", "a"}};
  builder.Accepted();
  builder.Bundle({.node = "h", .active = {}});
  const Plan plan = builder.Decide();
  EXPECT_EQ(DigestsFor(plan, "h"), Named({"a"}));
  EXPECT_TRUE(DigestsFor(plan, "h-other").empty());
  EXPECT_TRUE(DigestsFor(plan, "c").empty());
  EXPECT_EQ(EntriesOf(plan, "c")->spec.warmups.size(), 1U) << "a pod could be scheduled there";
  EXPECT_EQ(plan.status.summary.nodes, "0/1");
}

TEST(Distribution, RolloutKeepsBundlesOfBothImages) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.Bundle({.node = "n1", .image = "server:0", .digest = "b", .active = {"n1"}});
  builder.Bundle({.node = "n1", .image = "server:1", .digest = "a", .active = {"n1"}});
  builder.Pod({.name = "old",
               .node = "n1",
               .revision = "r0",
               .image = "server:0",
               .created = 1,
               .started = 2,
               .ready = 3});
  EXPECT_EQ(DigestsFor(builder.Decide(), "n1"), Named({"a", "b"}));
}

TEST(Distribution, KeyWithoutBundleGetsNewestAsSeed) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.Bundle({.node = "n1", .image = "server:older", .digest = "b", .published = 5});
  builder.Bundle({.node = "n1", .image = "server:0", .digest = "c", .published = 9});
  EXPECT_EQ(DigestsFor(builder.Decide(), "n1"), Named({"c"}));
}

TEST(Distribution, PreviousBundleIsKeptForRollback) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.Bundle({.node = "n1", .image = "server:0", .digest = "b", .published = 5});
  builder.Bundle({.node = "n1", .image = "server:1", .digest = "a", .published = 9});
  EXPECT_EQ(DigestsFor(builder.Decide(), "n1"), Named({"a", "b"}));
}

TEST(Distribution, OnlyRunningPodsWithTheCacheKeepAnOlderBundle) {
  const struct {
    const char* name;
    fakes::PodSetup pod;
    std::vector<Digest> bundles;
  } cases[] = {
      {"uses the cache", {.started = 2, .ready = 3}, Named({"a", "b", "c"})},
      {"without the cache", {.injected = false, .started = 2, .ready = 3}, Named({"a", "b"})},
      {"ended", {.started = 2, .exit_code = 0, .ended = 9}, Named({"a", "b"})},
  };
  for (const auto& c : cases) {
    SnapshotBuilder builder;
    builder.Node({.name = "n1"});
    builder.Accepted();
    builder.Bundle({.node = "n1", .image = "server:older", .digest = "c", .published = 1});
    builder.Bundle({.node = "n1", .image = "server:0", .digest = "b", .published = 5});
    builder.Bundle({.node = "n1", .image = "server:1", .digest = "a", .published = 9});
    fakes::PodSetup pod = c.pod;
    pod.name = "old";
    pod.node = "n1";
    pod.revision = "r0";
    pod.image = "server:older";
    pod.restart_policy = "Never";
    builder.Pod(pod);
    EXPECT_EQ(DigestsFor(builder.Decide(), "n1"), c.bundles) << c.name;
  }
}

TEST(Distribution, SeedCrossesCpuClassOnlyWithoutNativeCode) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"}).Node({.name = "n2", .cpu_class = fakes::kAvx2});
  builder.Accepted();
  builder.Bundle({.node = "n1", .image = "server:0", .digest = "b", .native = true});
  EXPECT_TRUE(DigestsFor(builder.Decide(), "n2").empty());
  builder.status().bundles[0].native = false;
  EXPECT_EQ(DigestsFor(builder.Decide(), "n2"), Named({"b"}));
}

TEST(Distribution, RunAsOfLivePodsKeepsItsDirectory) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Pod(
      {.name = "old", .node = "n1", .run_as = "u1000", .created = 1, .started = 2, .ready = 3});
  EXPECT_EQ(EntriesOf(builder.Decide(), "n1")->spec.warmups[0].run_as,
            (std::vector<std::string>{"image", "u1000"}));
}

TEST(Distribution, NodeWithAPodKeepsEntryWhenUnfit) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"}).Node({.name = "n2"});
  builder.Accepted();
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.node("n2").taints = {{.key = "team", .value = "x", .effect = "NoSchedule"}};
  builder.Pod({.name = "p", .node = "n2", .created = 1, .started = 20, .ready = 30});
  EXPECT_EQ(DigestsFor(builder.Decide(), "n2"), Named({"a"}));
}

TEST(Distribution, EntriesOfUnfitEmptyNodeAreRemoved) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"}).Node({.name = "n2"});
  builder.Accepted();
  builder.cache("n2").spec.warmups = {{.uid = "7d0f"}, {.uid = "other"}};
  builder.node("n2").taints = {{.key = "team", .value = "x", .effect = "NoSchedule"}};
  const Plan plan = builder.Decide();
  ASSERT_NE(EntriesOf(plan, "n2"), nullptr);
  EXPECT_TRUE(EntriesOf(plan, "n2")->spec.warmups.empty());
}

TEST(Distribution, EqualEntriesAreNotWritten) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.Bundle({.node = "n1", .active = {"n1"}});
  const Plan first = builder.Decide();
  builder.cache("n1").spec = EntriesOf(first, "n1")->spec;
  builder.cache("n1").spec.warmups.push_back({.uid = "other"});
  EXPECT_EQ(EntriesOf(builder.Decide(), "n1"), nullptr);
}

// The API server rejects a 65th entry, and with it the whole apply to that node.
TEST(Distribution, FullNodeIsSkippedAndReported) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1", .prepared = false});
  builder.view("n1").warmups_listed = 63;
  EXPECT_NE(EntriesOf(builder.Decide(), "n1"), nullptr);
  builder.view("n1").warmups_listed = 256;
  const Plan full = builder.Decide();
  EXPECT_EQ(EntriesOf(full, "n1"), nullptr);
  const api::Condition* ready = api::FindCondition(full.status.conditions, "Ready");
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ(ready->reason, "DirectoryUnusable");
  EXPECT_NE(ready->message.find("256 other CacheWarmups"), std::string::npos) << ready->message;
  ASSERT_TRUE(full.requeue_after.has_value());
  EXPECT_LE(*full.requeue_after, std::chrono::seconds(60));
}

TEST(Distribution, FullNodeTakesNoFetchSlot) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"}).Node({.name = "n2"}).Node({.name = "n3"});
  builder.Accepted();
  builder.Bundle({.node = "n1"});
  builder.in().settings.fetch_nodes_max = 1;
  for (const char* full : {"n1", "n2", "n3"}) {
    SnapshotBuilder one = builder;
    for (const char* node : {"n1", "n2", "n3"}) {
      one.view(node).warmups_listed = std::string_view(node) == full ? 256 : 0;
    }
    const Plan plan = one.Decide();
    const auto with_bundle =
        std::count_if(plan.nodes.begin(), plan.nodes.end(), [](const auto& each) {
          return !each.spec.warmups.empty() && !each.spec.warmups.front().bundles.empty();
        });
    EXPECT_EQ(with_bundle, 1) << full;
  }
}

TEST(Distribution, WarmupOnFullNodeStays) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.cache("n1").spec = EntriesOf(builder.Decide(), "n1")->spec;
  builder.view("n1").warmups_listed = 256;
  EXPECT_EQ(EntriesOf(builder.Decide(), "n1"), nullptr) << "nothing changes";
  EXPECT_EQ(api::FindCondition(builder.Decide().status.conditions, "Ready")->status, "True");
}

TEST(Distribution, MissingNodeCacheIsNotCreated) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.view("n1").cache = nullptr;
  EXPECT_TRUE(builder.Decide().nodes.empty());
}

TEST(Distribution, HardRefusalFreezesEntries) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.cache("n1").spec = EntriesOf(builder.Decide(), "n1")->spec;
  builder.in().workload = {.problem = "no Deployment llama"};
  EXPECT_TRUE(builder.Decide().nodes.empty());
}

TEST(Distribution, CountsReportedStates) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"}).Node({.name = "n2"}).Node({.name = "n3"}).Node({.name = "down"});
  builder.Accepted();
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.reported("n2").bundles = {{.digest = fakes::DigestNamed("a"),
                                     .state = api::BundleState::kFailed,
                                     .reason = "DiskFull",
                                     .message = "need 5 GB, free some"}};
  builder.node("down").ready = false;
  const Plan plan = builder.Decide();
  const api::BundleStatus& bundle = plan.status.bundles[0];
  EXPECT_EQ(bundle.nodes_desired, 3);
  EXPECT_EQ(bundle.nodes_ready, 1);
  EXPECT_EQ(bundle.nodes_failed, 1);
  EXPECT_EQ(bundle.message, "node n2: DiskFull: need 5 GB, free some");
}

TEST(Distribution, OldestEntriesAreDroppedBeyondSchemaLimit) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.Bundle({.node = "n1", .digest = "a", .published = 1, .active = {"n1"}});
  for (int i = 0; i < 70; ++i) {
    const std::string key = DigestOf(std::to_string(i)).hex();
    builder.status().bundles.push_back({.key = key,
                                        .gpu_type = "gone",
                                        .cpu_class = fakes::kAvx2,
                                        .digest = fakes::DigestNamed("b"),
                                        .published_time = At(10 + i)});
    builder.status().builders.push_back(
        {.key = key, .state = api::BuilderState::kCaptured, .elected_time = At(10 + i)});
  }
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.bundles.size(), 64U);
  EXPECT_EQ(plan.status.builders.size(), 64U);
  const std::string live = builder.Key("n1");
  EXPECT_TRUE(std::any_of(plan.status.bundles.begin(), plan.status.bundles.end(),
                          [&](const auto& each) { return each.key == live; }))
      << "the one in use stays, however old";
}

TEST(Distribution, UserCachesReachTheAgent) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.warmup().spec.caches = {{.name = "triton"}};
  EXPECT_EQ(EntriesOf(builder.Decide(), "n1")->spec.warmups[0].caches,
            builder.warmup().spec.caches);
}

// ---- fresh trees after a crash ------------------------------------------------------------------

class Renewal : public testing::Test {
 protected:
  Renewal() {
    builder.Node({.name = "n1"}).Node({.name = "n2"});
    builder.Accepted();
    builder.Bundle({.node = "n1", .active = {"n1", "n2"}});
    PlanOnce();
  }

  // Applies one plan; returns the entry of n1.
  const api::WantedWarmup& PlanOnce() {
    const Plan plan = builder.Decide();
    builder.status() = plan.status;
    for (const NodeEntries& wants : plan.nodes) {
      builder.cache(wants.node).spec = wants.spec;
    }
    return builder.cache("n1").spec.warmups.at(0);
  }

  void Crashed(int restarts, const std::string& pod = "p") {
    builder.Pod({.name = pod,
                 .node = "n1",
                 .created = 80,
                 .restarts = restarts,
                 .words = "back-off: exit 135: Error"});
  }

  SnapshotBuilder builder;
};

TEST_F(Renewal, CrashBeforeReadyCountsOnceOnItsNode) {
  EXPECT_EQ(PlanOnce().renew, 0);
  Crashed(0);
  EXPECT_EQ(PlanOnce().renew, 1);
  EXPECT_EQ(PlanOnce().renew, 1) << "planning again counts nothing";
  EXPECT_EQ(PlanOnce().renewed_for, std::vector<std::string>{"uid-p:1"});
  EXPECT_EQ(builder.cache("n2").spec.warmups.at(0).renew, 0);
}

TEST_F(Renewal, RestartAfterCrashIsTheSameCrash) {
  Crashed(0);
  PlanOnce();
  builder.Pod({.name = "p", .node = "n1", .created = 80, .started = 95, .restarts = 1});
  EXPECT_EQ(PlanOnce().renew, 1);
}

// Without a readiness probe it is Ready as soon as it runs again.
TEST_F(Renewal, CrashSeenAfterRestartCounts) {
  builder.pod_template()["spec"]["containers"][0].erase("readinessProbe");
  builder.Pod({.name = "p",
               .node = "n1",
               .created = 80,
               .started = 95,
               .ready = 95,
               .restarts = 1,
               .probe = false});
  EXPECT_EQ(PlanOnce().renew, 1);
}

TEST_F(Renewal, PodGetsAtMostTwoFreshTrees) {
  for (int restarts = 0; restarts < 6; ++restarts) {
    Crashed(restarts);
    PlanOnce();
  }
  EXPECT_EQ(PlanOnce().renew, 2);
}

TEST_F(Renewal, CrashAfterReadyIsIgnored) {
  builder.Pod({.name = "p",
               .node = "n1",
               .created = 80,
               .restarts = 1,
               .annotations = {{"cachewarm.io/start", R"({"result":"hit"})"}},
               .words = "exit 1"});
  EXPECT_EQ(PlanOnce().renew, 0);
}

TEST_F(Renewal, ExitWithZeroIsNoCrash) {
  builder.Pod({.name = "p", .node = "n1", .created = 80, .exit_code = 0});
  EXPECT_EQ(PlanOnce().renew, 0);
}

TEST_F(Renewal, WaitingForAnImageIsNoCrash) {
  builder.Pod({.name = "p", .node = "n1", .created = 80, .words = "ErrImagePull"});
  EXPECT_EQ(PlanOnce().renew, 0);
}

TEST_F(Renewal, CountOutlivesDeletedPods) {
  Crashed(0);
  PlanOnce();
  builder.in().pods.clear();
  EXPECT_EQ(PlanOnce().renew, 1);
  EXPECT_TRUE(PlanOnce().renewed_for.empty());
}

TEST_F(Renewal, RemembersAtMostSixteenCrashes) {
  for (int i = 0; i < 30; ++i) {
    Crashed(0, "p" + std::to_string(i));
  }
  EXPECT_EQ(PlanOnce().renew, 16);
  EXPECT_EQ(PlanOnce().renewed_for.size(), 16U);
}

}  // namespace
}  // namespace cachewarm::plan
