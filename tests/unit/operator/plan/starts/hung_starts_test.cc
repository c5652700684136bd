// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/api/names.h"
#include "tests/fakes/snapshot_builder.h"
#include "tests/unit/operator/plan/starts/hung_starts_fixture.h"

namespace cachewarm::plan {
namespace {

using api::BuilderState;
using api::StartResult;
using fakes::At;
using fakes::DigestNamed;
using fakes::HasEvent;
using fakes::PodSetup;
using fakes::ReasonOf;
using fakes::SnapshotBuilder;
using testing::HasSubstr;

TEST_F(HungStarts, SecondHungStartSuspendsTheBundle) {
  Start("p", "n1", 110);
  Start("q", "n2", 120);
  const Plan first = PlanAt(110 + kLimit);
  EXPECT_EQ(hung(), 1U);
  EXPECT_TRUE(HasEvent(first, "StartHung"));
  EXPECT_EQ(ReasonOf(first, "Degraded"), "Healthy");
  EXPECT_EQ(first.bundles_suspended, 0);
  EXPECT_EQ(entry("n1").bundles.size(), 1U);

  const Plan second = PlanAt(120 + kLimit);
  EXPECT_TRUE(second.status.bundles.empty());
  ASSERT_EQ(second.status.suspended_bundles.size(), 1U);
  const api::SuspendedBundle& suspended = second.status.suspended_bundles[0];
  EXPECT_EQ(suspended.digest, DigestNamed("a"));
  EXPECT_EQ(suspended.key, key);
  EXPECT_EQ(suspended.suspended_time, At(120 + kLimit));
  EXPECT_EQ(suspended.hung_starts.size(), 2U);
  EXPECT_EQ(second.bundles_suspended, 1);
  EXPECT_EQ(ReasonOf(second, "Degraded"), "BundleSuspended");
  EXPECT_EQ(ReasonOf(second, "Warm"), "BundleSuspended");
  EXPECT_TRUE(second.status.injection.has_value()) << "only the bundle is suspended";
  for (const char* node : {"n1", "n2"}) {
    EXPECT_TRUE(entry(node).bundles.empty());
    EXPECT_EQ(entry(node).renew, 1) << "without a new tree, the agent keeps the present one";
  }
}

TEST_F(HungStarts, MessageNamesBundlePodsTimesAndRemedy) {
  SuspendFirst();
  const Plan plan = builder.Decide();
  const std::string& message = fakes::Condition(plan, "Degraded")->message;
  EXPECT_THAT(message, HasSubstr(DigestNamed("a").ToString()));
  EXPECT_THAT(message, HasSubstr("p on node n1 (container started 2026-01-01T00:01:50Z, not Ready "
                                 "at 2026-01-01T00:07:10Z)"));
  EXPECT_THAT(message, HasSubstr("q on node n2"));
  EXPECT_THAT(message, HasSubstr("Delete the hung pods"));
  EXPECT_THAT(message, HasSubstr("spec.hangSeconds"));
  EXPECT_THAT(message, HasSubstr("one of the next pods builds another bundle"));
}

// Pods with long names that hang together.
class LongNames : public HungStarts, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Pods, LongNames, testing::Values(2, 3));

TEST_P(LongNames, MessageNamesTwoAndSaysIfThereAreOthers) {
  for (int i = 0; i < GetParam(); ++i) {
    Start(std::string(200, static_cast<char>('a' + i)), i == 0 ? "n1" : "n2", 110);
  }
  PlanAt(110 + kLimit);
  const std::string message = fakes::Condition(builder.Decide(), "Degraded")->message;
  EXPECT_THAT(message, HasSubstr(std::string(200, 'b')));
  EXPECT_EQ(message.find(", and others") != std::string::npos, GetParam() > 2) << message;
  EXPECT_THAT(message, HasSubstr("spec.hangSeconds"));
}

TEST_F(HungStarts, SuspensionIsWrittenOnce) {
  SuspendFirst();
  PlanAt(500);
  builder.Now(510);
  const Plan again = builder.Decide();
  EXPECT_FALSE(again.status_changed);
  EXPECT_TRUE(again.nodes.empty());
}

TEST_F(HungStarts, FirstHungStartIsRememberedAfterItsPodIsGone) {
  Start("p", "n1", 110);
  PlanAt(110 + kLimit);
  builder.in().pods.clear();
  PlanAt(500);
  EXPECT_EQ(hung(), 1U);
  Start("q", "n1", 510);
  PlanAt(510 + kLimit);
  EXPECT_EQ(status().suspended_bundles.size(), 1U);
}

TEST_F(HungStarts, OnePodCountsOnce) {
  Start("p", "n1", 110);
  PlanAt(110 + kLimit);
  builder.Pod({.name = "p", .node = "n1", .created = 105, .started = 600, .restarts = 1});
  PlanAt(600 + kLimit);
  EXPECT_EQ(hung(), 1U);
  EXPECT_EQ(status().bundles.size(), 1U);
}

struct LimitCase {
  double cold;
  int hang_seconds;
  int limit;
};

TEST_F(HungStarts, LimitDependsOnColdMedianAndHangSeconds) {
  const LimitCase cases[] = {{20, 300, 320}, {20, 10, 60}, {5, 10, 15}, {200, 300, 600}};
  for (const LimitCase& each : cases) {
    SetCold(each.cold);
    builder.warmup().spec.hang_seconds = each.hang_seconds;
    builder.status().bundles[0].hung_starts.clear();
    Start("p", "n1", 110);
    const Plan before = PlanAt(110 + each.limit - 1);
    EXPECT_EQ(hung(), 0U) << each.limit;
    EXPECT_LE(*before.requeue_after, std::chrono::seconds(1)) << "no event reports the limit";
    PlanAt(110 + each.limit);
    EXPECT_EQ(hung(), 1U) << each.limit;
  }
}

TEST_F(HungStarts, MedianOfOtherColdStartsReplacesThatOfTheBuilder) {
  builder.status().starts.recent.push_back({.pod_uid = "uid-cold",
                                            .key = key,
                                            .gpu_type = "cpu",
                                            .result = StartResult::kCold,
                                            .start_seconds = 400});
  Start("p", "n1", 110);
  PlanAt(110 + 1199);
  EXPECT_EQ(hung(), 0U);
  PlanAt(110 + 1200);
  EXPECT_EQ(hung(), 1U);
}

TEST_F(HungStarts, NothingIsJudgedBeforeAColdStartOfTheKeyWasMeasured) {
  builder.status().starts.recent[0].key = std::string(64, 'f');  // of another image
  Start("p", "n1", 110);
  Start("q", "n2", 110);
  PlanAt(100'000);
  EXPECT_EQ(hung(), 0U);
}

TEST_F(HungStarts, KeyOfAnotherCpuClassUsesTheMedianOfItsBundle) {
  builder.Node({.name = "n3", .cpu_class = fakes::kAvx2});
  builder.status().bundles[0].native = false;
  builder.reported("n3").bundles = builder.reported("n1").bundles;
  PlanAt(105);
  Start("p", "n3", 110);
  Start("q", "n3", 110);
  PlanAt(110 + kLimit);
  ASSERT_EQ(status().suspended_bundles.size(), 1U);
  EXPECT_TRUE(entry("n1").bundles.empty());
  EXPECT_TRUE(entry("n3").bundles.empty());
}

struct HealthyCase {
  const char* name;
  void (*change)(PodSetup&);
};

class HealthyStart : public HungStarts, public testing::WithParamInterface<HealthyCase> {};

TEST_P(HealthyStart, SuspendsNothing) {
  for (const char* node : {"n1", "n2"}) {
    PodSetup pod{.name = std::string("p-") + node, .node = node, .created = 105, .started = 110};
    GetParam().change(pod);
    builder.Pod(pod);
  }
  const Plan plan = PlanAt(10'000);
  EXPECT_EQ(hung(), 0U);
  EXPECT_FALSE(HasEvent(plan, "StartHung"));
  EXPECT_EQ(status().bundles.size(), 1U);
}

const HealthyCase kHealthy[] = {
    {"ready_late", [](PodSetup& pod) { pod.ready = 5000; }},
    {"not_injected", [](PodSetup& pod) { pod.injected = false; }},
    {"not_scheduled",
     [](PodSetup& pod) {
       pod.node.clear();
       pod.started.reset();
     }},
    {"image_not_pulled",
     [](PodSetup& pod) {
       pod.started.reset();
       pod.words = "ImagePullBackOff";
     }},
    {"started_before_the_bundle",
     [](PodSetup& pod) {
       pod.created = 20;
       pod.started = 49;
     }},
    {"deleted", [](PodSetup& pod) { pod.deleting = true; }},
    {"ended", [](PodSetup& pod) { pod.exit_code = 0; }},
    {"of_a_builder_job", [](PodSetup& pod) { pod.job = "llama-job"; }},
    {"counted_earlier",
     [](PodSetup& pod) {
       pod.annotations[std::string(api::kStartAnnotation)] = R"({"result":"hit"})";
     }},
};

INSTANTIATE_TEST_SUITE_P(Cases, HealthyStart, testing::ValuesIn(kHealthy),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_F(HungStarts, PodThatWaitsForAReadinessGateIsNotHung) {
  for (const char* name : {"p", "q"}) {
    Start(name, "n1", 110);
    auto pod = std::make_shared<api::Pod>(*builder.in().pods.back());
    pod->containers_ready = true;
    builder.in().pods.back() = pod;
  }
  PlanAt(10'000);
  EXPECT_EQ(hung(), 0U);
}

TEST_F(HungStarts, PodOfANodeThatIsNotReadyIsNotHung) {
  Start("p", "n1", 110);
  Start("q", "n1", 110);
  builder.node("n1").ready = false;
  PlanAt(10'000);
  EXPECT_EQ(hung(), 0U);
}

TEST_F(HungStarts, TemplateWithoutReadinessProbeIsNotJudged) {
  builder.pod_template()["spec"]["containers"][0].erase("readinessProbe");
  Start("p", "n1", 110);
  Start("q", "n2", 110);
  PlanAt(10'000);
  EXPECT_EQ(hung(), 0U);
}

TEST_F(HungStarts, PodOfAJobIsNotJudged) {
  builder.in().workload.kind = WorkloadKind::kJob;
  builder.Pod(
      {.name = "p", .node = "n1", .created = 105, .started = 110, .restart_policy = "Never"});
  builder.Pod(
      {.name = "q", .node = "n2", .created = 105, .started = 110, .restart_policy = "Never"});
  PlanAt(10'000);
  EXPECT_EQ(hung(), 0U) << "it is ready when it ends, which may take days";
}

TEST_F(HungStarts, PodsThatHangOnASuspendedBundleDoNotExcuseTheNextOne) {
  SuspendFirst();
  builder.Bundle({.node = "n1", .digest = "b", .published = 500, .active = {"n1", "n2"}});
  PlanAt(510);
  Start("r", "n1", 520);
  Start("s", "n2", 520);
  PlanAt(520 + kLimit);
  ASSERT_EQ(status().suspended_bundles.size(), 2U);
  EXPECT_EQ(status().suspended_bundles[1].digest, DigestNamed("b"));
  EXPECT_EQ(status().suspended_bundles[1].hung_starts.size(), 2U) << "p and q had the first one";
}

TEST_F(HungStarts, SlowStartWithoutTheCacheShowsAnotherCause) {
  Start("p", "n1", 110);
  Start("q", "n2", 110);
  builder.Pod({.name = "cold", .node = "n2", .injected = false, .created = 105, .started = 110});
  PlanAt(110 + kLimit);
  EXPECT_EQ(hung(), 0U);
  builder.Pod({.name = "cold",
               .node = "n2",
               .injected = false,
               .created = 105,
               .started = 110,
               .ready = 140});
  PlanAt(111 + kLimit);
  EXPECT_EQ(status().suspended_bundles.size(), 1U);
}

TEST_F(HungStarts, StartBeforeTheNodeHadTheBundleDoesNotCount) {
  builder.cache("n1").spec.warmups[0].fetch_granted_time = At(200);
  builder.reported("n1").bundles[0].fetch_seconds = 10;
  Start("p", "n1", 205);
  PlanAt(10'000);
  EXPECT_EQ(hung(), 0U);
  Start("q", "n1", 211);
  PlanAt(10'001);
  EXPECT_EQ(hung(), 1U);
}

TEST_F(HungStarts, GroupThatHangsTogetherCountsOnce) {
  const auto start = [&](const std::string& name, const std::string& node, int started) {
    builder.Pod({.name = name,
                 .node = node,
                 .created = started - 5,
                 .started = started,
                 .labels = {{"leaderworkerset.sigs.k8s.io/name", "llama"},
                            {"leaderworkerset.sigs.k8s.io/group-index", "0"}}});
  };
  start("rank-0", "n1", 110);
  start("rank-1", "n2", 115);
  PlanAt(115 + kLimit);
  EXPECT_EQ(hung(), 1U);
  EXPECT_EQ(status().bundles.size(), 1U);
  // The group is created again under its name.
  builder.in().pods.clear();
  start("rank-0b", "n1", 600);
  start("rank-1b", "n2", 600);
  PlanAt(600 + kLimit);
  EXPECT_EQ(status().suspended_bundles.size(), 1U);
}

TEST_F(HungStarts, SuspendedBundleIsNoSeedAndLeavesNoOtherSeed) {
  builder.Bundle({.node = "n1", .image = "server:0", .digest = "b", .published = 5});
  PlanAt(105);
  ASSERT_EQ(entry("n1").bundles.size(), 2U);
  SuspendFirst();
  EXPECT_TRUE(entry("n1").bundles.empty()) << "the tree that hung had the seed's files too";
  builder.pod_template()["spec"]["containers"][0]["image"] = "server:2";
  builder.in().pods.clear();
  PlanAt(1000);
  ASSERT_EQ(entry("n1").bundles.size(), 1U);
  EXPECT_EQ(entry("n1").bundles[0].digest, DigestNamed("b"));
}

TEST_F(HungStarts, PausedWarmupLosesTheBundleToo) {
  builder.warmup().spec.paused = true;
  SuspendFirst();
  EXPECT_TRUE(entry("n1").bundles.empty());
  EXPECT_EQ(entry("n1").renew, 1);
}

TEST_F(HungStarts, NodeThatLostItsEntryGetsANewTree) {
  SuspendFirst();
  builder.cache("n1").spec = {};
  PlanAt(600);
  EXPECT_EQ(entry("n1").renew, 1);
}

// ---- the next build -----------------------------------------------------------------------------

TEST_F(HungStarts, NextBundleIsBuiltByAPodThatStartedWithoutTheSuspendedOne) {
  SuspendFirst();
  PlanAt(700);
  EXPECT_EQ(status().builders[0].state, BuilderState::kCaptured) << "hung pods have its files";
  Start("next", "n1", 710);
  PlanAt(720);
  EXPECT_EQ(status().builders[0].pod_uid, "uid-next");
  EXPECT_EQ(status().builders[0].attempt, 2);
  EXPECT_EQ(status().builders[0].bundles_suspended, 1);
}

TEST_F(HungStarts, PodOfANodeThatStillHasTheBundleDoesNotBuild) {
  SuspendFirst();
  builder.reported("n1").bundles = {
      {.digest = DigestNamed("a"), .state = api::BundleState::kActive}};
  Start("next", "n1", 710);
  PlanAt(720);
  EXPECT_EQ(status().builders[0].pod_uid, "uid-builder");
}

TEST_F(HungStarts, PodOfAnotherCpuClassWithThePortableBundleDoesNotBuild) {
  builder.Node({.name = "n3", .cpu_class = fakes::kAvx2});
  builder.status().bundles[0].native = false;
  builder.reported("n3").bundles = builder.reported("n1").bundles;
  PlanAt(105);
  SuspendFirst();
  ASSERT_FALSE(builder.reported("n3").bundles.empty()) << "its agent has not replaced the tree";
  Start("next", "n3", 710);
  PlanAt(720);
  for (const api::BuilderStatus& each : status().builders) {
    EXPECT_NE(each.pod_uid, "uid-next");
  }
}

TEST_F(HungStarts, OldestSuspendedBundleIsForgottenAtTheLimit) {
  const auto old = [](size_t i) {
    return Digest::FromHex(std::string(62, '0') + std::to_string(10 + i));
  };
  for (size_t i = 0; i < api::kSuspendedBundlesMax; ++i) {
    builder.status().suspended_bundles.push_back(
        {.key = std::string(64, 'e'),
         .digest = old(i),
         .suspended_time = At(1),
         .hung_starts = {{.pod_uid = "1"}, {.pod_uid = "2"}}});
  }
  Start("p", "n1", 110);
  Start("q", "n2", 110);
  PlanAt(110 + kLimit);
  ASSERT_EQ(status().suspended_bundles.size(), api::kSuspendedBundlesMax);
  EXPECT_EQ(status().suspended_bundles.front().digest, old(1));
  EXPECT_EQ(status().suspended_bundles.back().digest, DigestNamed("a"));
}

// Sets the answer of the builder's agent.
void AnswerCapture(SnapshotBuilder& builder, const std::string& digest) {
  auto& captures = builder.cache("n1").spec.captures;
  ASSERT_EQ(captures.size(), 1U);
  builder.cache("n1").status.captures = {{.id = captures[0].id,
                                          .state = api::CaptureState::kPushed,
                                          .digest = DigestNamed(digest),
                                          .bytes = 100,
                                          .files = 1}};
}

TEST_F(HungStarts, NewBundleOfTheKeyIsDistributed) {
  SuspendFirst();
  builder.in().pods.clear();
  builder.Pod({.name = "next", .node = "n1", .created = 705, .started = 710, .ready = 730});
  PlanAt(740);
  AnswerCapture(builder, "b");
  const Plan plan = PlanAt(750);
  ASSERT_EQ(plan.status.bundles.size(), 1U);
  EXPECT_EQ(plan.status.bundles[0].digest, DigestNamed("b"));
  EXPECT_TRUE(plan.status.bundles[0].hung_starts.empty());
  EXPECT_EQ(ReasonOf(plan, "Degraded"), "Healthy");
  ASSERT_EQ(entry("n2").bundles.size(), 1U);
  EXPECT_EQ(entry("n2").bundles[0].digest, DigestNamed("b"));
  EXPECT_EQ(plan.status.suspended_bundles.size(), 1U) << "kept, so that it is never served again";
}

TEST_F(HungStarts, SameBundleAgainIsRejectedAndEndsTheBuilds) {
  SuspendFirst();
  builder.in().pods.clear();
  builder.Pod({.name = "next", .node = "n1", .created = 705, .started = 710, .ready = 730});
  PlanAt(740);
  AnswerCapture(builder, "a");
  const Plan plan = PlanAt(750);
  EXPECT_TRUE(plan.status.bundles.empty());
  EXPECT_EQ(plan.status.builders[0].state, BuilderState::kFailed);
  EXPECT_EQ(plan.status.builders[0].reason, "BundleSuspended");
  EXPECT_THAT(fakes::Condition(plan, "Warm")->message, HasSubstr("no other bundle is built"));
  PlanAt(100'000);
  EXPECT_EQ(status().builders[0].state, BuilderState::kFailed);
}

TEST_F(HungStarts, SecondSuspendedBundleEndsTheBuildsOfARevision) {
  builder.status().builders[0].bundles_suspended = 1;
  SuspendFirst();
  EXPECT_EQ(status().builders[0].bundles_suspended, 2);
  builder.in().pods.clear();
  Start("next", "n1", 50'000);
  PlanAt(100'000);
  EXPECT_EQ(status().builders[0].state, BuilderState::kCaptured);
  // A restarted rollout.
  builder.Pod(
      {.name = "newer", .node = "n2", .revision = "r2", .created = 100'005, .started = 100'010});
  PlanAt(100'020);
  EXPECT_EQ(status().builders[0].pod_uid, "uid-newer");
  EXPECT_EQ(status().builders[0].bundles_suspended, 0);
}

TEST_F(HungStarts, RunningBuildOfAPodWithTheBundleFails) {
  api::BuilderStatus& running = builder.status().builders[0];
  running.state = BuilderState::kElected;
  running.pod_uid = "uid-p";
  running.pod_name = "p";
  Start("p", "n1", 110);
  Start("q", "n2", 110);
  PlanAt(110 + kLimit);
  EXPECT_EQ(status().builders[0].state, BuilderState::kFailed);
  EXPECT_EQ(status().builders[0].reason, "BuilderLost");
  EXPECT_TRUE(builder.cache("n1").spec.captures.empty());
}

TEST_F(HungStarts, JobWaitsUntilTheTreesAreReplaced) {
  builder.warmup().spec.compile.builder = api::Builder::kJob;
  SuspendFirst();
  builder.in().pods.clear();
  builder.status().suspended_bundles[0].suspended_time = At(1000);
  EXPECT_TRUE(PlanAt(1029).jobs_to_create.empty());
  EXPECT_EQ(PlanAt(1030).jobs_to_create.size(), 1U);
}

}  // namespace
}  // namespace cachewarm::plan
