// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/captures/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "operator/plan/gates/wait_estimator.h"
#include "tests/unit/operator/plan/captures/ranks_fixture.h"

namespace cachewarm::plan {
namespace {

using api::BuilderState;
using api::CaptureState;
using fakes::At;
using fakes::DigestNamed;
using fakes::HasEvent;
using fakes::ReleaseOf;

TEST_F(Ranks, RanksAreCapturedInTurnAndKeepEarlierFiles) {
  Three();
  CaptureBuilder();
  EXPECT_TRUE(RequestsTo(0).empty());
  ASSERT_EQ(RequestsTo(1).size(), 1U);
  EXPECT_EQ(RequestsTo(1)[0].pod_uid, "uid-r1");
  EXPECT_EQ(RequestsTo(1)[0].base_digest, DigestNamed("a"));
  EXPECT_EQ(RequestsTo(1)[0].key, builder.Key("n1"));
  EXPECT_EQ(RequestsTo(1)[0].started_time, At(91));
  EXPECT_EQ(RequestsTo(1)[0].ready_time, At(110));
  EXPECT_TRUE(RequestsTo(2).empty());
  Pushed(1, "b", 2);
  PlanAt(130);
  EXPECT_TRUE(RequestsTo(1).empty());
  ASSERT_EQ(RequestsTo(2).size(), 1U);
  EXPECT_EQ(RequestsTo(2)[0].base_digest, DigestNamed("b"));
  Pushed(2, "c", 3);
  const Plan plan = PlanAt(140);
  EXPECT_TRUE(RequestsTo(2).empty());
  EXPECT_EQ(entry().state, BuilderState::kCaptured);
  EXPECT_EQ(entry().ranks, (std::vector<std::string>{"uid-r0", "uid-r1", "uid-r2"}));
  EXPECT_FALSE(entry().captured);
  EXPECT_EQ(entry().pod_name, "r0");
  ASSERT_EQ(plan.builds_finished.size(), 1U);
  EXPECT_EQ(plan.builds_finished[0].reason, "Captured");
}

TEST_F(Ranks, EveryCaptureOfAGroupIsMarkedAsGrouped) {
  Three();
  PlanAt(111);
  ASSERT_EQ(RequestsTo(0).size(), 1U);
  EXPECT_TRUE(RequestsTo(0)[0].grouped);
  Pushed(0, "a");
  PlanAt(120);
  ASSERT_EQ(RequestsTo(1).size(), 1U);
  EXPECT_TRUE(RequestsTo(1)[0].grouped);
}

TEST_F(Ranks, PodAloneInItsGroupIsNotGrouped) {
  Rank(0);
  Rank(1, Labels("1"));
  PlanAt(111);
  ASSERT_EQ(RequestsTo(0).size(), 1U);
  EXPECT_FALSE(RequestsTo(0)[0].grouped);
}

TEST_F(Ranks, PodWithoutAGroupIsNotGrouped) {
  Rank(0, {});
  Rank(1, {});
  PlanAt(111);
  ASSERT_EQ(RequestsTo(0).size(), 1U);
  EXPECT_FALSE(RequestsTo(0)[0].grouped);
}

TEST_F(Ranks, BundleIsPublishedAfterLastRank) {
  Three();
  CaptureBuilder();
  EXPECT_TRUE(bundles().empty());
  EXPECT_EQ(entry().state, BuilderState::kCapturing);
  Pushed(1, "b", 2);
  EXPECT_FALSE(HasEvent(PlanAt(130), "Published"));
  EXPECT_TRUE(bundles().empty());
  EXPECT_TRUE(builder.cache("n3").spec.warmups[0].bundles.empty());
  Pushed(2, "c", 3);
  EXPECT_TRUE(HasEvent(PlanAt(140), "Published"));
  ASSERT_EQ(bundles().size(), 1U);
  EXPECT_EQ(bundles()[0].digest, DigestNamed("c"));
  EXPECT_EQ(bundles()[0].files, 3);
  EXPECT_EQ(bundles()[0].bytes, 300);
  EXPECT_TRUE(bundles()[0].native) << "one rank has host code in it";
  EXPECT_DOUBLE_EQ(bundles()[0].compile_seconds, 12);
  EXPECT_EQ(bundles()[0].builder_pod, "r0");
  EXPECT_EQ(bundles()[0].published_time, At(140));
  ASSERT_EQ(builder.cache("n3").spec.warmups[0].bundles.size(), 1U);
  EXPECT_EQ(builder.cache("n3").spec.warmups[0].bundles[0].digest, DigestNamed("c"));
}

TEST_F(Ranks, RanksWithoutNewFilesKeepTheBundle) {
  Three();
  CaptureBuilder();
  Pushed(1, "a");
  PlanAt(130);
  Answer(2, {.state = CaptureState::kWaiting, .reason = "NothingToCapture"});
  const Plan plan = PlanAt(140);
  EXPECT_FALSE(HasEvent(plan, "RankNotCaptured"));
  ASSERT_EQ(bundles().size(), 1U);
  EXPECT_EQ(bundles()[0].digest, DigestNamed("a"));
  EXPECT_EQ(entry().message, "");
}

TEST_F(Ranks, NewLeaderContinuesCapture) {
  Three();
  CaptureBuilder();
  const std::string asked = RequestsTo(1).at(0).id;
  // It decides again from the status and the NodeCaches, any number of times.
  for (int now : {121, 122, 129}) {
    const Plan plan = PlanAt(now);
    EXPECT_TRUE(plan.nodes.empty());
    EXPECT_FALSE(plan.status_changed);
    EXPECT_EQ(RequestsTo(1).at(0).id, asked);
  }
  Pushed(1, "b", 2);
  PlanAt(130);
  PlanAt(131);
  EXPECT_EQ(RequestsTo(2).at(0).base_digest, DigestNamed("b"));
}

TEST_F(Ranks, LateRankDoesNotDisplacePendingRank) {
  Rank(0);
  Rank(2);
  CaptureBuilder();
  ASSERT_EQ(RequestsTo(2).size(), 1U);
  Rank(1);  // started before it
  PlanAt(121);
  EXPECT_EQ(RequestsTo(2).size(), 1U);
  EXPECT_TRUE(RequestsTo(1).empty());
  Pushed(2, "c", 2);
  PlanAt(130);
  EXPECT_EQ(RequestsTo(1).at(0).base_digest, DigestNamed("c"));
}

TEST_F(Ranks, BuilderIsReadyOnlyWithAllRanks) {
  Three();
  const auto leader = [this](std::optional<int> ready) {
    builder.Pod({.name = "r2",
                 .node = "n2",
                 .created = 80,
                 .started = 92,
                 .ready = ready,
                 .labels = Labels("0")});
  };
  leader(std::nullopt);
  PlanAt(111);
  EXPECT_EQ(RequestsTo(0).at(0).ready_time, WallTime{});
  leader(150);
  PlanAt(151);
  EXPECT_EQ(RequestsTo(0).at(0).ready_time, At(150));
}

TEST_F(Ranks, UnreadyRankIsAwaitedUntilBuildTimeout) {
  Rank(0);
  CaptureBuilder();
  ASSERT_EQ(bundles().size(), 1U);
  builder.status().bundles.clear();
  api::BuilderStatus& again = builder.status().builders[0];
  again.state = BuilderState::kCapturing;
  again.captured = api::CapturedBundle{.digest = DigestNamed("a"), .captured_time = At(120)};
  builder.Pod({.name = "r1", .node = "n1", .created = 80, .started = 119, .labels = Labels("0")});
  PlanAt(120 + 1799);
  EXPECT_EQ(RequestsTo(1).size(), 1U);
  PlanAt(120 + 1800);
  EXPECT_EQ(bundles().size(), 1U);
}

TEST_F(Ranks, BuilderMayBeDeletedOnceCaptured) {
  Three();
  CaptureBuilder();
  Pushed(1, "b", 2);
  PlanAt(130);
  builder.in().pods.clear();
  Rank(1);
  Rank(2);
  PlanAt(131);
  EXPECT_EQ(RequestsTo(2).size(), 1U);
  builder.in().pods.clear();
  PlanAt(132);
  ASSERT_EQ(bundles().size(), 1U) << "existing state is unchanged with all of them";
  EXPECT_EQ(bundles()[0].digest, DigestNamed("b"));
  EXPECT_EQ(entry().state, BuilderState::kCaptured);
}

// ---- a rank that fails --------------------------------------------------------------------------

struct FailureCase {
  const char* name;
  api::CaptureStatus answer;  // no id: the agent does not answer
  bool keeps = true;
  int after = 10;  // seconds after the request
  const char* words;
};

class FailedRank : public Ranks, public testing::WithParamInterface<FailureCase> {};

TEST_P(FailedRank, FailedRankIsReportedAndNextRankFollows) {
  Three();
  builder.cache("n1").status.node.extends_bundles = GetParam().keeps;
  CaptureBuilder();
  if (!GetParam().answer.id.empty()) {
    Answer(1, GetParam().answer);
  }
  const Plan plan = GetParam().keeps ? PlanAt(120 + GetParam().after) : builder.Decide();
  if (GetParam().keeps) {
    EXPECT_TRUE(HasEvent(plan, "RankNotCaptured"));
  }
  EXPECT_NE(entry().message.find("pod r1 (in the builder's group) on node n1"), std::string::npos)
      << entry().message;
  EXPECT_NE(entry().message.find(GetParam().words), std::string::npos) << entry().message;
  ASSERT_EQ(RequestsTo(2).size(), 1U);
  EXPECT_EQ(RequestsTo(2)[0].base_digest, DigestNamed("a"));
  Pushed(2, "c", 2);
  PlanAt(2000);
  ASSERT_EQ(bundles().size(), 1U);
  EXPECT_EQ(bundles()[0].digest, DigestNamed("c"));
  EXPECT_EQ(entry().state, BuilderState::kCaptured);
  EXPECT_EQ(entry().attempt, 1);
  EXPECT_NE(entry().message.find("pod r1"), std::string::npos) << "the message is kept";
  EXPECT_EQ(fakes::ReasonOf(PlanAt(2001), "Degraded"), "Healthy");
}

INSTANTIATE_TEST_SUITE_P(
    All, FailedRank,
    testing::Values(
        FailureCase{.name = "refused",
                    .answer = {.id = "x",
                               .state = CaptureState::kFailed,
                               .reason = "CacheNotSettled",
                               .message = "still changing"},
                    .words = "CacheNotSettled: still changing"},
        FailureCase{.name = "silent", .answer = {}, .after = 130, .words = "did not answer"},
        FailureCase{.name = "never_settles",
                    .answer = {.id = "x",
                               .state = CaptureState::kWaiting,
                               .message = "9 files, still changing"},
                    .after = 130,
                    .words = "9 files, still changing"},
        FailureCase{.name = "older_agent", .answer = {}, .keeps = false, .words = "too old"}),
    [](const auto& each) { return each.param.name; });

TEST_F(Ranks, PublishFailureIsDegradedAndRetried) {
  Three();
  CaptureBuilder();
  Answer(1, {.state = CaptureState::kFailed,
             .reason = "PublishFailed",
             .message = "the bundle to keep cannot be read"});
  const Plan plan = PlanAt(600);
  EXPECT_FALSE(HasEvent(plan, "RankNotCaptured"));
  EXPECT_EQ(fakes::ReasonOf(plan, "Degraded"), "StoreError");
  EXPECT_EQ(RequestsTo(1).size(), 1U);
}

TEST_F(Ranks, AllRanksShareOneBuildTimeout) {
  Three();
  CaptureBuilder();
  Answer(1, {.state = CaptureState::kPacking});
  PlanAt(120 + 1799);
  EXPECT_TRUE(bundles().empty());
  PlanAt(120 + 1800);
  ASSERT_EQ(bundles().size(), 1U) << "existing state is unchanged";
  EXPECT_EQ(bundles()[0].digest, DigestNamed("a"));
  EXPECT_NE(entry().message.find("pod r2"), std::string::npos) << entry().message;
}

// ---- which pods are ranks -----------------------------------------------------------------------

struct UnrelatedCase {
  const char* name;
  fakes::PodSetup pod;
};

class UnrelatedPods : public Ranks, public testing::WithParamInterface<UnrelatedCase> {};

TEST_P(UnrelatedPods, UnrelatedPodIsNotCaptured) {
  Rank(0);
  builder.Pod(GetParam().pod);
  CaptureBuilder();
  for (const api::CaptureRequest& request : RequestsTo(1)) {
    EXPECT_TRUE(request.base_digest.empty()) << "a builder of its own key";
  }
  EXPECT_EQ(bundles().size(), 1U) << "no pod is awaited";
}

INSTANTIATE_TEST_SUITE_P(
    All, UnrelatedPods,
    testing::Values(
        UnrelatedCase{
            "of_another_group",
            {.name = "b", .node = "n1", .started = 91, .ready = 99, .labels = Labels("1")}},
        UnrelatedCase{"of_no_group", {.name = "b", .node = "n1", .started = 91, .ready = 99}},
        UnrelatedCase{"of_another_key",
                      {.name = "b",
                       .node = "n1",
                       .image = "server:2",
                       .started = 91,
                       .ready = 99,
                       .labels = Labels("0")}},
        UnrelatedCase{"not_started", {.name = "b", .node = "n1", .labels = Labels("0")}},
        UnrelatedCase{"not_injected",
                      {.name = "b",
                       .node = "n1",
                       .injected = false,
                       .started = 91,
                       .ready = 99,
                       .labels = Labels("0")}},
        UnrelatedCase{"leaving",
                      {.name = "b",
                       .node = "n1",
                       .started = 91,
                       .ready = 99,
                       .deleting = true,
                       .labels = Labels("0")}}),
    [](const auto& each) { return each.param.name; });

// ---- groups with several images -----------------------------------------------------------------

class TwoImages : public Ranks {
 protected:
  void Leader(const std::string& revision = "r1", const Texts& labels = Labels("0")) {
    builder.Pod({.name = "leader",
                 .node = "n1",
                 .revision = revision,
                 .image = "leader:1",
                 .created = 80,
                 .started = 91,
                 .ready = 99,
                 .labels = labels});
  }

  bool IsLeaderElected() {
    const auto& builders = builder.status().builders;
    return std::any_of(builders.begin(), builders.end(),
                       [](const auto& each) { return each.pod_name == "leader"; });
  }
};

TEST_F(TwoImages, LeaderOfAnotherImageBuildsForItsOwnKey) {
  Rank(0);
  Leader();
  PlanAt(111);
  ASSERT_EQ(builder.status().builders.size(), 2U);
  Pushed(0, "a");
  Pushed(1, "b");
  PlanAt(120);
  ASSERT_EQ(bundles().size(), 2U);
  for (const api::BundleStatus& bundle : bundles()) {
    const bool of_leader = bundle.image == "leader:1";
    EXPECT_EQ(bundle.key, builder.Key("n1", of_leader ? "leader:1" : "server:1"));
    EXPECT_EQ(bundle.digest, DigestNamed(of_leader ? "b" : "a"));
  }
  PlanAt(125);
  const auto& builders = builder.status().builders;
  EXPECT_TRUE(std::all_of(builders.begin(), builders.end(), [](const auto& each) {
    return each.state == api::BuilderState::kCaptured && each.attempt == 1;
  })) << "nothing is built twice";
}

TEST_F(TwoImages, PodOfAnotherRevisionIsNotElected) {
  Rank(0);
  Leader("r0");
  PlanAt(111);
  EXPECT_FALSE(IsLeaderElected());
}

TEST_F(TwoImages, PodOfAnotherGroupIsNotElected) {
  Rank(0);
  Leader("r1", Labels("1"));
  PlanAt(111);
  EXPECT_FALSE(IsLeaderElected());
}

TEST_F(TwoImages, LeaderWithoutDevicesIsNotElected) {
  for (const char* node : {"n0", "n1"}) {
    builder.node(node).allocatable["nvidia.com/gpu"] = 1;
    builder.cache(node).status.node.gpu_type = fakes::kH100;
  }
  builder.pod_template()["spec"]["containers"][0]["resources"]["limits"] = {{"nvidia.com/gpu", 1}};
  builder.Pod({.name = "r0",
               .node = "n0",
               .gpus = 1,
               .created = 80,
               .started = 90,
               .ready = 110,
               .labels = Labels("0")});
  Leader();
  PlanAt(111);
  EXPECT_EQ(builder.status().builders.size(), 1U);
  EXPECT_FALSE(IsLeaderElected());
}

TEST_F(Ranks, PodsWithoutGroupAreCapturedAlone) {
  for (int number = 0; number < 3; ++number) {
    Rank(number, {});
  }
  CaptureBuilder();
  ASSERT_EQ(bundles().size(), 1U);
  EXPECT_EQ(bundles()[0].digest, DigestNamed("a"));
  EXPECT_TRUE(entry().ranks.empty());
  EXPECT_FALSE(entry().captured);
  for (int number = 0; number < 3; ++number) {
    EXPECT_TRUE(RequestsTo(number).empty());
  }
}

TEST_F(Ranks, AtMostSixtyFourRanksAreCaptured) {
  Three();
  CaptureBuilder();
  auto& ranks = builder.status().builders[0].ranks;
  while (ranks.size() < api::kRanksMax - 1) {
    ranks.push_back("gone-" + std::to_string(ranks.size()));
  }
  Pushed(1, "b", 2);
  PlanAt(130);
  EXPECT_TRUE(RequestsTo(2).empty());
  ASSERT_EQ(bundles().size(), 1U);
  EXPECT_EQ(bundles()[0].digest, DigestNamed("b"));
}

// ---- rebuilds and held pods ---------------------------------------------------------------------

TEST_F(Ranks, MissRecapturesGroupWhileOldBundleServes) {
  builder.Bundle({.node = "n0", .digest = "e", .published = 50, .active = {"n0", "n1", "n2"}});
  Three();
  builder.cache("n1").status.starts = {
      {.pod_uid = "uid-r1", .result = api::StartResult::kMiss, .opened = 1}};
  PlanAt(115);
  PlanAt(116);  // r1 is already counted as a miss, and elected
  EXPECT_EQ(entry().pod_name, "r1");
  Pushed(1, "b");
  PlanAt(120);
  EXPECT_EQ(bundles().at(0).digest, DigestNamed("e"));
  EXPECT_EQ(RequestsTo(0).at(0).base_digest, DigestNamed("b"));
  Pushed(0, "c", 2);
  PlanAt(130);
  EXPECT_EQ(RequestsTo(2).at(0).base_digest, DigestNamed("c"));
  Pushed(2, "d", 3);
  PlanAt(140);
  ASSERT_EQ(bundles().size(), 1U);
  EXPECT_EQ(bundles()[0].digest, DigestNamed("d"));
}

TEST_F(Ranks, BuildForecastCountsRemainingRanks) {
  const auto end = [this] {
    const Observed observed = Observe(builder.in());
    const Context context(builder.in(), observed);
    const Bundles bundles(context);
    const WaitEstimator estimator({.context = context,
                                   .bundles = bundles,
                                   .builders = builder.status().builders,
                                   .starts = builder.status().starts});
    const auto forecast = estimator.ForecastBuild(*FindKey(context, 0, context.pods[0].factors));
    return forecast ? forecast->end : WallTime{};
  };
  Three();
  PlanAt(111);
  EXPECT_EQ(end(), At(110 + 3 * 15));
  Pushed(0, "a");
  PlanAt(120);
  EXPECT_EQ(end(), At(120 + 2 * 15));
  Pushed(1, "b");
  PlanAt(130);
  EXPECT_EQ(end(), At(130 + 15));
}

TEST_F(Ranks, HeldPodsOfAnotherReplicaWaitForAllRanks) {
  builder.warmup().spec.gate.mode = api::GateMode::kHold;
  Three();
  CaptureBuilder();
  builder.Pod({.name = "h", .held = true, .created = 118, .labels = Labels("1")});
  EXPECT_EQ(ReleaseOf(PlanAt(121), "h"), nullptr) << "the first rank alone would be a miss";
  Pushed(1, "b", 2);
  EXPECT_EQ(ReleaseOf(PlanAt(125), "h"), nullptr);
  Pushed(2, "c", 3);
  EXPECT_EQ(ReleaseOf(PlanAt(130), "h"), nullptr) << "no node has it yet";
  for (const char* node : {"n0", "n1", "n2", "n3"}) {
    builder.reported(node).bundles = {
        {.digest = DigestNamed("c"), .state = api::BundleState::kActive}};
  }
  const Plan plan = PlanAt(135);
  ASSERT_NE(ReleaseOf(plan, "h"), nullptr);
  EXPECT_EQ(ReleaseOf(plan, "h")->reason, "ReleasedWarm");
}

}  // namespace
}  // namespace cachewarm::plan
