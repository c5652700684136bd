// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/operator/plan/captures/harvests_fixture.h"

namespace cachewarm::plan {
namespace {

using testing::HasSubstr;

class HarvestElections : public Harvests {};

TEST_F(HarvestElections, NodeWithTheMostUnitsIsCaptured) {
  Offer("n1", 2, "s1");
  Offer("n2", 5, "s2");
  Offer("n3", 5, "s3");
  Next(110);
  ASSERT_NE(RequestOn("n2"), nullptr) << "the first by name of those with the most";
  EXPECT_EQ(RequestOn("n1"), nullptr);
  EXPECT_EQ(RequestOn("n3"), nullptr);
  const api::CaptureRequest& request = *RequestOn("n2");
  EXPECT_EQ(request.generation, "tree-n2");
  EXPECT_EQ(request.base_digest, DigestNamed("a"));
  EXPECT_EQ(request.key, builder.Key("n1"));
  EXPECT_EQ(request.pod_uid, "uid-pod-n2");
  EXPECT_FALSE(request.grouped);
  EXPECT_NE(request.ready_time, WallTime{});
  EXPECT_EQ(Status().reason, "Harvesting");
  EXPECT_EQ(Status().units, 5);
  const Plan again = builder.Decide();
  EXPECT_FALSE(again.status_changed);
  EXPECT_TRUE(again.nodes.empty());
}

TEST_F(HarvestElections, SetThatBroughtNothingIsNotCapturedAgain) {
  const Plan plan = HarvestedFromN1("a");
  EXPECT_EQ(Status().reason, "NothingNew");
  EXPECT_FALSE(fakes::HasEvent(plan, "Harvested"));
  EXPECT_TRUE(Bundle().extends.empty());
  Offer("n2", 3, "s1");  // an equal set on another node
  for (int i = 1; i < 5; ++i) {
    Next(110 + i * kInterval);
    EXPECT_EQ(RequestOn("n1"), nullptr);
    EXPECT_EQ(RequestOn("n2"), nullptr);
  }
  Offer("n1", 4, "s1-grown");
  Next(110 + 5 * kInterval);
  EXPECT_NE(RequestOn("n1"), nullptr);
}

TEST_F(HarvestElections, RestartedContainerIsAwaited) {
  Offer("n1", 3, "s1");
  builder.status().starts.counted_pod_uids = {"uid-again"};  // its first start is over
  builder.Pod({.name = "again", .node = "n1", .created = 1, .started = 105, .restarts = 1});
  Next(110);
  EXPECT_EQ(RequestOn("n1"), nullptr);
  builder.in().pods.pop_back();
  builder.Pod(
      {.name = "again", .node = "n1", .created = 1, .started = 105, .ready = 111, .restarts = 1});
  Next(112);
  EXPECT_NE(RequestOn("n1"), nullptr);
}

TEST_F(HarvestElections, OfferAboutAnOlderBundleIsIgnored) {
  HarvestedFromN1("b");  // the nodes still have "a"
  Offer("n2", 9, "s2");
  Next(110 + kInterval);
  EXPECT_EQ(RequestOn("n2"), nullptr);
}

TEST_F(HarvestElections, StartOnTheNodeIsAwaited) {
  Offer("n1", 3, "s1");
  builder.Pod({.name = "new", .node = "n1", .created = 101, .started = 105});
  Next(110);
  EXPECT_EQ(RequestOn("n1"), nullptr);
  builder.Pod({.name = "new", .node = "n1", .created = 101, .started = 105, .ready = 111});
  Next(112);
  EXPECT_NE(RequestOn("n1"), nullptr);
}

TEST_F(HarvestElections, EarlierTreeIsNotHarvestedAfterASuspension) {
  builder.status().suspended_bundles = {
      {.key = Bundle().key,
       .digest = DigestNamed("e"),
       .suspended_time = At(15),  // the pods started later, in the active tree
       .hung_starts = {{.pod_uid = "x", .pod = "x", .node = "n1"}}}};
  Offer("n1", 3, "s1");
  builder.reported("n1").generation = "renewed";
  Next(110);
  EXPECT_EQ(RequestOn("n1"), nullptr);
  EXPECT_THAT(Status().refusal, HasSubstr("suspended now"));
  builder.reported("n1").generation = "tree-n1";
  Next(111);
  EXPECT_NE(RequestOn("n1"), nullptr) << "the renewed tree has no file of the bundle";
}

class ElectionRefusals : public Harvests, public testing::WithParamInterface<RefusalCase> {};

TEST_P(ElectionRefusals, IsInTheStatus) {
  ExpectRefusal(GetParam().make, GetParam().words);
}

INSTANTIATE_TEST_SUITE_P(All, ElectionRefusals,
                         testing::Values(RefusalCase{"DamagedTree",
                                                     [](SnapshotBuilder& b) {
                                                       b.reported("n1").harvestable.message =
                                                           "a scrub found damaged files";
                                                     },
                                                     "node n1: a scrub found damaged files"},
                                         RefusalCase{"OtherKey",
                                                     [](SnapshotBuilder& b) {
                                                       b.Pod({.name = "old",
                                                              .node = "n1",
                                                              .image = "server:0",
                                                              .created = 1,
                                                              .started = 2,
                                                              .ready = 3});
                                                     },
                                                     "another image"},
                                         RefusalCase{"OfASuspendedBundle",
                                                     [](SnapshotBuilder& b) {
                                                       b.status().suspended_bundles = {
                                                           {.key = b.status().bundles[0].key,
                                                            .digest = DigestNamed("e"),
                                                            .suspended_time = At(40),
                                                            .hung_starts = {{.pod_uid = "x",
                                                                             .pod = "x",
                                                                             .node = "n1"}}}};
                                                     },
                                                     "suspended now"}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cachewarm::plan
