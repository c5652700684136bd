// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/operator/plan/captures/harvests_fixture.h"

namespace cachewarm::plan {
namespace {

using fakes::HasEvent;
using testing::HasSubstr;

TEST_F(Harvests, WithoutTheFieldNothingIsCaptured) {
  builder.warmup().spec.harvest = false;
  Offer("n1", 2, "s1");
  Next(110);
  EXPECT_EQ(RequestOn("n1"), nullptr);
  EXPECT_TRUE(builder.status().harvests.empty());
  EXPECT_FALSE(builder.cache("n1").spec.warmups.at(0).harvest);
}

TEST_F(Harvests, AgentsAreAskedToReportUnits) {
  EXPECT_TRUE(builder.cache("n1").spec.warmups.at(0).harvest);
  EXPECT_TRUE(builder.status().harvests.empty()) << "a key without late units has no entry";
}

TEST_F(Harvests, LargerBundleReplacesTheOlderOne) {
  builder.status().bundles[0].hung_starts = {{.pod_uid = "x", .pod = "x", .node = "n3"}};
  builder.status().bundles[0].factors = {{.name = "image", .value = "server:1"}};
  const Plan plan = HarvestedFromN1("b");
  ASSERT_EQ(builder.status().bundles.size(), 1U);
  EXPECT_EQ(Bundle().digest, DigestNamed("b"));
  EXPECT_EQ(Bundle().extends, std::vector<std::string>{DigestNamed("a").ToString()});
  EXPECT_EQ(Bundle().files, 14);
  EXPECT_EQ(Bundle().published_time, At(5)) << "starts are judged as before";
  EXPECT_EQ(Bundle().harvested_time, At(120));
  EXPECT_EQ(Bundle().hung_starts.size(), 1U);
  EXPECT_EQ(Bundle().factors.size(), 1U);
  EXPECT_TRUE(HasEvent(plan, "Harvested"));
  EXPECT_EQ(Status().reason, "Harvested");
  EXPECT_EQ(Status().finished_time, At(120));
  EXPECT_EQ(RequestOn("n1"), nullptr);
  for (const char* node : {"n1", "n2", "n3"}) {
    EXPECT_EQ(builder.cache(node).spec.warmups[0].bundles.at(0).digest, DigestNamed("b"));
  }
}

TEST_F(Harvests, NodesWithTheOlderBundleStayWarm) {
  ASSERT_EQ(fakes::Condition(builder.Decide(), "Warm")->status, "True");
  const Plan plan = HarvestedFromN1("b");
  EXPECT_EQ(fakes::Condition(plan, "Warm")->status, "True");
  builder.Pod({.name = "held", .held = true, .created = 121});
  const Plan next = Next(122);
  ASSERT_NE(fakes::ReleaseOf(next, "held"), nullptr);
  EXPECT_EQ(fakes::ReleaseOf(next, "held")->reason, "ReleasedWarm");
  EXPECT_EQ(Bundle().nodes_ready, 0) << "no node has the larger bundle yet";
  builder.reported("n2").bundles = {};
  EXPECT_EQ(fakes::Condition(Next(123), "Warm")->status, "False");
}

TEST_F(Harvests, NextHarvestFollowsAfterTheInterval) {
  HarvestedFromN1("b");
  for (const char* node : {"n1", "n2", "n3"}) {
    builder.reported(node).bundles = {
        {.digest = DigestNamed("b"), .state = api::BundleState::kActive}};
    builder.reported(node).harvestable = {};
  }
  Offer("n3", 1, "s3");
  const Plan early = Next(110 + kInterval - 60);
  EXPECT_EQ(RequestOn("n3"), nullptr);
  ASSERT_TRUE(early.requeue_after.has_value());
  EXPECT_LE(*early.requeue_after, std::chrono::seconds(60));
  Next(110 + kInterval);
  ASSERT_NE(RequestOn("n3"), nullptr);
  EXPECT_EQ(RequestOn("n3")->base_digest, DigestNamed("b"));
  Answer("n3", Pushed("c"));
  Next(120 + kInterval);
  EXPECT_EQ(Bundle().extends.size(), 2U);
  EXPECT_EQ(Status().number, 2);
}

TEST_F(Harvests, IntervalIsASetting) {
  builder.in().settings.harvest_interval = std::chrono::minutes(2);
  HarvestedFromN1("a");
  Offer("n1", 4, "s2");
  Next(229);
  EXPECT_EQ(RequestOn("n1"), nullptr);
  Next(230);
  EXPECT_NE(RequestOn("n1"), nullptr);
}

TEST_F(Harvests, NewBuildMakesTheSetsNewAgain) {
  HarvestedFromN1("b");
  builder.status().bundles[0].digest = DigestNamed("d");  // another build replaced the bundle
  builder.reported("n1").bundles = {
      {.digest = DigestNamed("d"), .state = api::BundleState::kActive}};
  Next(110 + kInterval);
  ASSERT_NE(RequestOn("n1"), nullptr);
  EXPECT_EQ(RequestOn("n1")->base_digest, DigestNamed("d"));
}

TEST_F(Harvests, LeaderThatEndsAfterTheStatusIsFollowedByOneThatCapturesTheSameTree) {
  Offer("n1", 3, "s1");
  builder.Now(110);
  builder.status() = builder.Decide().status;  // the NodeCache was not written
  ASSERT_EQ(Status().reason, "Harvesting");
  Offer("n2", 7, "s2");
  Next(111);
  ASSERT_NE(RequestOn("n1"), nullptr);
  EXPECT_EQ(RequestOn("n2"), nullptr);
  EXPECT_EQ(Status().number, 1);
}

class HarvestRefusals : public Harvests, public testing::WithParamInterface<RefusalCase> {};

TEST_P(HarvestRefusals, IsInTheStatus) {
  ExpectRefusal(GetParam().make, GetParam().words);
}

INSTANTIATE_TEST_SUITE_P(
    All, HarvestRefusals,
    testing::Values(RefusalCase{"Paused", [](SnapshotBuilder& b) { b.warmup().spec.paused = true; },
                                "spec.paused"},
                    RefusalCase{"Proof",
                                [](SnapshotBuilder& b) {
                                  b.warmup().spec.compile.builder = api::Builder::kJob;
                                  b.warmup().spec.compile.proof = api::Proof::kEngine;
                                },
                                "spec.compile.proof"}),
    [](const auto& test) { return test.param.name; });

TEST_F(Harvests, SuspendedBundleIsNotExtended) {
  Offer("n1", 3, "s1");
  Next(110);
  builder.status().suspended_bundles = {
      {.key = Bundle().key,
       .digest = DigestNamed("a"),
       .gpu_type = "cpu",
       .image = "server:1",
       .suspended_time = At(111),
       .hung_starts = {{.pod_uid = "x", .pod = "x", .node = "n1"}}}};
  builder.status().bundles.clear();
  Next(112);
  EXPECT_EQ(Status().reason, "HarvestFailed");
  Next(113);
  EXPECT_EQ(Status().refusal, "the bundle is suspended");
}

TEST_F(Harvests, SuspensionTakesTheOlderBundleFromNodesToo) {
  HarvestedFromN1("b");
  builder.in().settings.fetch_nodes_max = 1;  // n2 and n3 may still wait for a slot
  const std::vector<api::WantedBundle> older = {
      {.key = Bundle().key, .digest = DigestNamed("a"), .bytes = 1000}};
  builder.cache("n3").spec.warmups[0].bundles = older;
  const int renew = builder.cache("n3").spec.warmups[0].renew;
  builder.status().suspended_bundles = {
      {.key = Bundle().key,
       .digest = DigestNamed("b"),
       .gpu_type = "cpu",
       .image = "server:1",
       .extends = Bundle().extends,
       .suspended_time = At(121),
       .hung_starts = {{.pod_uid = "x", .pod = "x", .node = "n1"}}}};
  builder.status().bundles.clear();
  Next(122);
  EXPECT_TRUE(builder.cache("n3").spec.warmups[0].bundles.empty());
  EXPECT_EQ(builder.cache("n3").spec.warmups[0].renew, renew + 1) << "its tree has the files";
}

TEST_F(Harvests, NativeCodeDoesNotTakeTheBundleFromOtherCpuClasses) {
  Offer("n1", 3, "s1");
  Next(110);
  api::CaptureStatus native = Pushed("b");
  native.native = true;
  Answer("n1", native);
  const Plan plan = Next(120);
  EXPECT_EQ(Bundle().digest, DigestNamed("a"));
  EXPECT_EQ(Status().reason, "HarvestRefused");
  EXPECT_THAT(Status().message, HasSubstr("CPU classes"));
  EXPECT_TRUE(HasEvent(plan, "HarvestRefused"));
  Next(110 + kInterval);
  EXPECT_EQ(RequestOn("n1"), nullptr);
}

TEST_F(Harvests, RefusalOfTheAgentIsFinal) {
  Offer("n1", 3, "s1");
  Next(110);
  Answer("n1", {.state = CaptureState::kFailed, .reason = "HarvestRefused", .message = "lost"});
  Next(120);
  EXPECT_EQ(Status().reason, "HarvestRefused");
  EXPECT_EQ(Status().message, "node n1: lost");
  Next(110 + kInterval);
  EXPECT_EQ(RequestOn("n1"), nullptr) << "of the same set";
}

TEST_F(Harvests, StoreThatFailsEndsTheHarvestAtTheTimeout) {
  Offer("n1", 3, "s1");
  Next(110);
  Answer("n1", {.state = CaptureState::kFailed, .reason = "PublishFailed", .message = "no store"});
  Next(120);
  EXPECT_EQ(Status().reason, "Harvesting");
  Next(110 + builder.warmup().spec.compile.timeout_seconds);
  EXPECT_EQ(Status().reason, "HarvestFailed");
  EXPECT_THAT(Status().message, HasSubstr("no store"));
}

TEST_F(Harvests, NodeThatIsGoneEndsTheHarvest) {
  Offer("n1", 3, "s1");
  Next(110);
  std::erase_if(builder.in().nodes,
                [](const NodeView& view) { return view.node->meta.name == "n1"; });
  Next(120);
  EXPECT_EQ(Status().reason, "HarvestFailed");
  EXPECT_THAT(Status().message, HasSubstr("node n1 is gone"));
}

TEST_F(Harvests, PauseEndsTheHarvest) {
  Offer("n1", 3, "s1");
  Next(110);
  builder.warmup().spec.paused = true;
  Next(115);
  EXPECT_EQ(Status().reason, "HarvestRefused");
  EXPECT_THAT(Status().message, HasSubstr("spec.paused"));
  EXPECT_EQ(RequestOn("n1"), nullptr) << "else the agent would publish while paused";
  builder.warmup().spec.paused = false;
  Next(116);
  EXPECT_EQ(RequestOn("n1"), nullptr) << "the interval has not passed";
}

TEST_F(Harvests, KeyThatComesBackDoesNotReuseTheNumberOfAHarvest) {
  HarvestedFromN1("a");
  const auto offers = [this] {
    std::vector<std::string> types;
    for (const char* node : {"n1", "n2", "n3"}) {
      types.push_back(builder.cache(node).status.node.gpu_type);
    }
    return types;
  }();
  for (const char* node : {"n1", "n2", "n3"}) {
    builder.cache(node).status.node.gpu_type = "";
  }
  Next(130);
  ASSERT_EQ(builder.status().bundles.size(), 1U);
  for (size_t i = 0; i < offers.size(); ++i) {
    builder.cache("n" + std::to_string(i + 1)).status.node.gpu_type = offers[i];
  }
  Offer("n1", 4, "s2");
  Next(110 + kInterval);
  ASSERT_NE(RequestOn("n1"), nullptr);
  EXPECT_TRUE(RequestOn("n1")->id.ends_with("-h2")) << "the agent may still have the result of h1";
}

TEST_F(Harvests, HarvestOfAKeyWithoutNodesEnds) {
  Offer("n1", 3, "s1");
  Next(110);
  for (const char* node : {"n1", "n2", "n3"}) {
    builder.cache(node).status.node.gpu_type = "";
  }
  Next(120);
  ASSERT_EQ(builder.status().harvests.size(), 1U);
  EXPECT_EQ(Status().reason, "HarvestFailed");
  EXPECT_EQ(Status().finished_time, At(120));
}

TEST_F(Harvests, EntryGoesWithTheBundle) {
  HarvestedFromN1("a");
  for (const char* node : {"n1", "n2", "n3"}) {
    builder.cache(node).status.node.gpu_type = "";
  }
  builder.status().bundles.clear();
  Next(130);
  EXPECT_TRUE(builder.status().harvests.empty());
}

}  // namespace
}  // namespace cachewarm::plan
