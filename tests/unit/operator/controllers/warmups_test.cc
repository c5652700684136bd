// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/warmups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::controllers {
namespace {

using op::testing::DeploymentObject;
using op::testing::Eventually;
using op::testing::HeldPodObject;
using op::testing::NamespaceObject;
using op::testing::NodeCacheObject;
using op::testing::NodeObject;
using op::testing::WarmupObject;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class WarmupsTest : public op::testing::ClusterCacheFixture {
 protected:
  WarmupsTest()
      : executor({.client = server,
                  .clock = clock,
                  .events = events,
                  .metrics = metrics,
                  .log = log,
                  .job_refusals = job_refusals}),
        dry_runs(server, clock),
        build_requests({.clock = clock,
                        .log = log,
                        .connect = [](const std::string&) { return http::MakeClient({}); },
                        .wake = [](const std::string&) {}}),
        warmups({.cluster = cluster,
                 .executor = executor,
                 .dry_runs = dry_runs,
                 .build_requests = build_requests,
                 .job_refusals = job_refusals,
                 .clock = clock,
                 .metrics = metrics,
                 .agent_namespace = "cachewarm-system",
                 .admission_missing = [this] { return admission_missing; }}) {
    server.Put(kube::kNamespaces, NamespaceObject("default"));
  }

  absl::StatusOr<kube::Outcome> Reconcile() { return warmups.Reconcile("default/llama", {}); }

  codec::Json Warmup() { return *server.Find(kube::kCacheWarmups, {"default", "llama"}); }

  std::string ReadyReason() {
    const codec::Json warmup = Warmup();
    const codec::Json* conditions = kube::At(warmup, {"status", "conditions"});
    for (size_t i = 0; conditions != nullptr && i < conditions->size(); ++i) {
      if (kube::TextAt((*conditions)[i], {"type"}) == "Ready") {
        return kube::TextAt((*conditions)[i], {"reason"});
      }
    }
    return "";
  }

  // Waits until the store has what the server has.
  bool Seen() {
    return Eventually([&] {
      const kube::Object stored = cluster.warmups.store().Get({"default", "llama"});
      const kube::Object there = server.Find(kube::kCacheWarmups, {"default", "llama"});
      return stored != nullptr &&
             kube::ResourceVersionOf(*stored) == kube::ResourceVersionOf(*there);
    });
  }

  codec::Json SpecOf(const std::string& node) {
    const kube::Object node_cache = server.Find(kube::kNodeCaches, {.name = node});
    return node_cache->value("spec", codec::Json::object());
  }

  // A NodeCache of n1 with an entry of the warmup llama, as it was known by `uid`.
  void PutEntryOf(const std::string& uid) {
    server.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
    server.Put(kube::kNodeCaches, NodeCacheObject("n1", "uid-n1"));
    const codec::Json entry = {{"uid", uid}, {"namespace", "default"}, {"name", "llama"}};
    ASSERT_TRUE(server
                    .Do(kube::Apply(kube::kNodeCaches,
                                    {{"metadata", {{"name", "n1"}}},
                                     {"spec", {{"warmups", codec::Json::array({entry})}}}},
                                    {.field_manager = "cw-" + uid}),
                        {})
                    .ok());
  }

  void RefuseNodeCaches() {
    server.OnWrite([](const kube::Request& request, codec::Json&) {
      return request.resource == kube::kNodeCaches.plural
                 ? absl::InvalidArgumentError("spec.warmups: too many: 65")
                 : absl::OkStatus();
    });
  }

  std::string admission_missing;
  apply::JobRefusals job_refusals;
  apply::Executor executor;
  admission::DryRuns dry_runs;
  apply::BuildRequests build_requests;
  Warmups warmups;
};

TEST_F(WarmupsTest, AWorkloadThatIsNotThereIsACondition) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  StartCache();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(ReadyReason(), "WorkloadNotFound");
  EXPECT_FALSE(Warmup()["metadata"]["labels"].contains("cachewarm.io/inject"));
}

TEST_F(WarmupsTest, RehearsesBeforeItInjects) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  server.Put(kube::kDeployments, DeploymentObject("llama"));
  server.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "uid-n1"));
  StartCache();
  const auto outcome = Reconcile();
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->requeue_after, Duration(0)) << "a new verdict is looked at at once";
  EXPECT_EQ(dry_runs.Last("uid-llama").injected, plan::DryRunResult::kAllowed);
  EXPECT_EQ(Metric("cachewarm_admission_dry_runs_total{result=\"allowed\"}"), 1);
}

TEST_F(WarmupsTest, APlanOnAStoreThatIsBehindItsOwnWriteWaits) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  StartCache();
  StopCache();  // the store stays as it is
  ASSERT_TRUE(Reconcile().ok());
  const size_t before = Writes();
  const auto outcome = Reconcile();
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_TRUE(outcome->requeue_after.has_value());
  EXPECT_EQ(Writes(), before) << "planned twice on the same object";
  clock.Advance(std::chrono::seconds(5));
  EXPECT_TRUE(absl::IsAborted(Reconcile().status())) << "and after a while it tries all the same";
}

TEST_F(WarmupsTest, SettlesToNoFurtherWrites) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  server.Put(kube::kDeployments, DeploymentObject("llama"));
  server.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "uid-n1"));
  StartCache();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(Reconcile().ok());
    ASSERT_TRUE(Seen());
    ASSERT_TRUE(Eventually([&] {
      const kube::Object stored = cluster.node_caches.store().Get({.name = "n1"});
      return kube::ResourceVersionOf(*stored) ==
             kube::ResourceVersionOf(*server.Find(kube::kNodeCaches, {.name = "n1"}));
    }));
  }
  const size_t before = Writes();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(Writes(), before);
  EXPECT_EQ(ReadyReason(), "DirectoryUnusable");  // no agent runs on n1
  EXPECT_EQ(SpecOf("n1")["warmups"][0]["uid"], "uid-llama");
}

TEST_F(WarmupsTest, OfAWarmupThatIsGoneNothingIsLeft) {
  PutEntryOf("uid-llama");
  server.Put(kube::kPods, HeldPodObject("held", "llama"));
  StartCache();
  ASSERT_EQ(LeftoverUids(cluster, {"default", "llama"}, ""), std::vector<std::string>{"uid-llama"});
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_FALSE(SpecOf("n1").contains("warmups") && !SpecOf("n1")["warmups"].empty());
  const kube::Object pod = server.Find(kube::kPods, {"default", "held"});
  const codec::Json* gates = kube::At(*pod, {"spec", "schedulingGates"});
  EXPECT_TRUE(gates == nullptr || gates->empty());
}

TEST_F(WarmupsTest, AWarmupMadeAgainKeepsItsPodsAndLosesOldEntries) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  PutEntryOf("uid-before");
  StartCache();
  EXPECT_EQ(LeftoverUids(cluster, {"default", "llama"}, "uid-llama"),
            std::vector<std::string>{"uid-before"});
  ASSERT_TRUE(Reconcile().ok());
  for (const codec::Json& entry : SpecOf("n1").value("warmups", codec::Json::array())) {
    EXPECT_NE(entry["uid"], "uid-before");
  }
}

TEST_F(WarmupsTest, ANodeCacheThatIsRefusedCostsTheWarmupNothingElse) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  server.Put(kube::kDeployments, DeploymentObject("llama"));
  server.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "uid-n1"));
  RefuseNodeCaches();
  StartCache();
  const auto first = Reconcile();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(dry_runs.Last("uid-llama").injected, plan::DryRunResult::kAllowed);
  ASSERT_TRUE(Seen());
  const auto outcome = Reconcile();
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  ASSERT_TRUE(outcome->requeue_after.has_value());
  EXPECT_LE(*outcome->requeue_after, std::chrono::seconds(30)) << "it is asked again in a while";
  EXPECT_EQ(log.Count("spec.warmups: too many"), 2) << "once for every time that it was asked";
}

TEST_F(WarmupsTest, WhatAnOlderWarmupLeftOnANodeThatRefusesKeepsNoLiveOneFromBeingPlanned) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  PutEntryOf("uid-before");
  RefuseNodeCaches();
  StartCache();
  const auto outcome = Reconcile();
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(ReadyReason(), "WorkloadNotFound");
  ASSERT_TRUE(outcome->requeue_after.has_value());
  EXPECT_LE(*outcome->requeue_after, std::chrono::seconds(30));
}

TEST_F(WarmupsTest, WhatAWarmupThatIsGoneLeftOnANodeThatRefusesIsTriedAgain) {
  PutEntryOf("uid-llama");
  RefuseNodeCaches();
  StartCache();
  EXPECT_EQ(Reconcile()->requeue_after, Duration(30'000));
  server.OnWrite(nullptr);
  EXPECT_EQ(Reconcile()->requeue_after, std::nullopt);
  EXPECT_TRUE(SpecOf("n1").value("warmups", codec::Json::array()).empty());
}

TEST_F(WarmupsTest, OfAWarmupThatIsGoneNothingIsRememberedThoughNoNodeCacheNamesIt) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  server.Put(kube::kDeployments, DeploymentObject("llama"));
  server.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "uid-n1"));
  StartCache();
  ASSERT_TRUE(Reconcile().ok());
  ASSERT_NE(dry_runs.Last("uid-llama").fingerprint, "");
  job_refusals.Record("uid-llama", "job", "quota");
  server.Remove(kube::kCacheWarmups, {"default", "llama"});
  server.Remove(kube::kNodeCaches, {.name = "n1"});
  ASSERT_TRUE(Eventually([&] {
    return cluster.warmups.store().size() == 0 && cluster.node_caches.store().size() == 0;
  }));
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(dry_runs.Last("uid-llama").fingerprint, "");
  EXPECT_TRUE(job_refusals.Of("uid-llama").empty());
}

TEST_F(WarmupsTest, AServerThatRefusesTheStatusIsToldAsAnError) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  StartCache();
  server.Intercept([](const kube::Request& request) {
    return request.resource == "cachewarmups/status" ? absl::UnavailableError("down")
                                                     : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsUnavailable(Reconcile().status()));
  server.Intercept(nullptr);
  EXPECT_TRUE(Reconcile().ok()) << "a failed write is no reason to wait";
}

TEST_F(WarmupsTest, AKeyWithoutAnythingIsNothingToDo) {
  StartCache();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_THAT(server.Requests(), Not(Contains(HasSubstr("apply"))));
  EXPECT_FALSE(warmups.Reconcile("//", {}).ok());
}

}  // namespace
}  // namespace cachewarm::controllers
