// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "lib/api/names.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using api::StartResult;
using api::StartSample;
using fakes::At;
using fakes::SnapshotBuilder;

SnapshotBuilder Warm() {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.Bundle({.node = "n1", .published = 10, .compile_seconds = 12, .active = {"n1"}});
  return builder;
}

void Evidence(SnapshotBuilder& builder, const std::string& pod, StartResult result,
              double compile_seconds = 0) {
  builder.cache("n1").status.starts.push_back(
      {.pod_uid = "uid-" + pod,
       .result = result,
       .compile_seconds = compile_seconds,
       .compiled_after_seconds = compile_seconds > 0 ? compile_seconds + 2 : 0});
}

TEST(Starts, StartingPodIsObservedUntilCounted) {
  SnapshotBuilder builder = Warm();
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  builder.Apply(builder.Decide());
  ASSERT_EQ(builder.cache("n1").spec.starts.size(), 1U);
  EXPECT_EQ(builder.cache("n1").spec.starts[0].started_time, At(90));
  EXPECT_EQ(builder.cache("n1").spec.starts[0].ready_time, WallTime{});
  EXPECT_EQ(builder.cache("n1").spec.starts[0].run_as, "image");
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 95});
  builder.Apply(builder.Decide());
  EXPECT_EQ(builder.cache("n1").spec.starts[0].ready_time, At(95));
  Evidence(builder, "a", StartResult::kHit);
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.starts.counts.hit, 1);
  EXPECT_EQ(plan.status.starts.counted_pod_uids, std::vector<std::string>{"uid-a"});
  ASSERT_EQ(plan.starts_counted.size(), 1U);
  EXPECT_EQ(plan.starts_counted[0].start_seconds, 5);
  EXPECT_TRUE(fakes::EntriesOf(plan, "n1")->spec.starts.empty());
}

TEST(Starts, TotalsOfEveryGpuTypeInUseExistBeforeItsFirstStart) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Node({.name = "n2", .gpu_type = "nvidia/l4/sm_89"});
  EXPECT_TRUE(builder.Decide().status.starts.gpu_types.empty()) << "counting has not started";
  builder.Accepted();
  const std::vector<api::GpuTypeStarts> zeros = {{.gpu_type = "cpu"},
                                                 {.gpu_type = "nvidia/l4/sm_89"}};
  builder.Apply(builder.Decide());
  EXPECT_EQ(builder.status().starts.gpu_types, zeros);
  EXPECT_FALSE(builder.Decide().status_changed);
}

TEST(Starts, PodWithoutProbeRequeuesAtAssumedReady) {
  SnapshotBuilder builder = Warm();
  builder.pod_template()["spec"]["containers"][0].erase("readinessProbe");
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 91});
  const Plan early = builder.Decide();
  EXPECT_TRUE(early.starts_counted.empty());
  EXPECT_LE(*early.requeue_after, std::chrono::seconds(50));
  builder.Apply(early);
  builder.Now(150);
  Evidence(builder, "a", StartResult::kHit);
  EXPECT_EQ(builder.Decide().starts_counted.size(), 1U);
}

TEST(Starts, PodThatIsNotReadyAtTheAssumedTimeCausesNoFurtherRequeue) {
  SnapshotBuilder builder = Warm();
  builder.pod_template()["spec"]["containers"][0].erase("readinessProbe");
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  builder.Now(149);
  builder.Apply(builder.Decide());
  EXPECT_EQ(*builder.Decide().requeue_after, std::chrono::seconds(1));
  builder.Now(150);
  EXPECT_GT(*builder.Decide().requeue_after, std::chrono::seconds(1)) << "an event reports it";
}

// A warmup that injects since `accepted`.
SnapshotBuilder InjectingSince(int accepted) {
  SnapshotBuilder builder = Warm();
  builder.status().conditions = {{.type = "Ready",
                                  .status = "True",
                                  .reason = "Injecting",
                                  .observed_generation = 1,
                                  .last_transition_time = At(accepted)}};
  return builder;
}

TEST(Starts, LongAnnotationIsTruncatedInReason) {
  SnapshotBuilder builder = InjectingSince(50);
  builder.Pod({.name = "p",
               .node = "n1",
               .injected = false,
               .created = 60,
               .started = 61,
               .ready = 70,
               .annotations = {{"cachewarm.io/warmup", std::string(200'000, 'x')}}});
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.annotations.size(), 1U);
  EXPECT_EQ(plan.annotations[0].uid, "uid-p");
  EXPECT_NE(plan.annotations[0].value.find("cachewarm.io/warmup names a different CacheWarmup"),
            std::string::npos);
  EXPECT_LT(plan.annotations[0].value.size(), 1'000U);
}

TEST(Starts, UninjectedPodCountsAsColdAndIsNotObserved) {
  SnapshotBuilder builder = InjectingSince(50);
  builder.Pod({.name = "before",
               .node = "n1",
               .injected = false,
               .created = 49,
               .started = 50,
               .ready = 60});
  builder.Pod({.name = "late", .node = "n1", .injected = false, .created = 50, .started = 52});
  Plan plan = builder.Decide();
  EXPECT_TRUE(plan.starts_counted.empty());
  EXPECT_TRUE(plan.status.builders.empty());
  builder.Pod(
      {.name = "late", .node = "n1", .injected = false, .created = 50, .started = 52, .ready = 70});
  plan = builder.Decide();
  ASSERT_EQ(plan.starts_counted.size(), 1U);
  EXPECT_EQ(plan.starts_counted[0].pod, "late");
  EXPECT_EQ(plan.starts_counted[0].result, StartResult::kCold);
  EXPECT_EQ(plan.starts_counted[0].start_seconds, 18);
  EXPECT_TRUE(plan.status.builders.empty());
  EXPECT_TRUE(fakes::HasEvent(plan, "InjectionSkipped")) << "the pod has the reason";
  EXPECT_FALSE(fakes::HasEvent(plan, "StartedCold")) << "one event for each start";
  ASSERT_EQ(plan.annotations.size(), 1U);
  EXPECT_EQ(plan.annotations[0].pod, "late");
  EXPECT_NE(plan.annotations[0].value.find("before the admission policy had seen the CacheWarmup"),
            std::string::npos);
  builder.Apply(plan);
  EXPECT_TRUE(builder.cache("n1").spec.starts.empty());
  EXPECT_TRUE(builder.Decide().starts_counted.empty()) << "counted once";
}

// A warmup that injected until the namespace forbade hostPath volumes at `kRefused`.
constexpr int kRefused = 50;

SnapshotBuilder InjectionStopped() {
  SnapshotBuilder builder = Warm();
  builder.status().starts.counting_started_time = At(1);
  builder.status().conditions = {{.type = "Ready",
                                  .status = "False",
                                  .reason = "NamespaceForbidsHostPath",
                                  .observed_generation = 1,
                                  .last_transition_time = At(kRefused)}};
  builder.in().namespace_labels = {{"pod-security.kubernetes.io/enforce", "baseline"}};
  builder.Pod({.name = "late",
               .node = "n1",
               .injected = false,
               .created = kRefused,
               .started = 52,
               .ready = 70});
  return builder;
}

TEST(Starts, PodOfSuspendedWarmupCountsAsColdWithReason) {
  SnapshotBuilder builder = InjectionStopped();
  builder.Pod({.name = "before",
               .node = "n1",
               .injected = false,
               .created = kRefused - 1,
               .started = 51,
               .ready = 60});
  Plan plan = builder.Decide();
  ASSERT_EQ(plan.starts_counted.size(), 1U) << "the other pod's conditions are unknown";
  EXPECT_EQ(plan.starts_counted[0].pod, "late");
  EXPECT_EQ(plan.starts_counted[0].result, StartResult::kCold);
  EXPECT_TRUE(fakes::HasEvent(plan, "InjectionSkipped"));
  ASSERT_EQ(plan.annotations.size(), 1U);
  EXPECT_NE(plan.annotations[0].value.find("NamespaceForbidsHostPath"), std::string::npos);
  builder.Apply(plan);
  EXPECT_TRUE(builder.Decide().starts_counted.empty()) << "counted once";
}

TEST(Starts, SuspendedWarmupIgnoresPodsOfOtherWarmups) {
  SnapshotBuilder never = InjectionStopped();
  never.status().starts.counting_started_time = WallTime{};
  EXPECT_TRUE(never.Decide().starts_counted.empty()) << "it never injected";

  SnapshotBuilder paused = InjectionStopped();
  paused.warmup().spec.paused = true;
  EXPECT_TRUE(paused.Decide().starts_counted.empty());

  SnapshotBuilder another = InjectionStopped();
  another.Pod({.name = "late",
               .node = "n1",
               .injected = false,
               .created = kRefused,
               .started = 52,
               .ready = 70,
               .annotations = {{"cachewarm.io/warmup", "another"}}});
  EXPECT_TRUE(another.Decide().starts_counted.empty());
}

TEST(Starts, StartIsCountedOnce) {
  SnapshotBuilder builder = Warm();
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 95});
  Evidence(builder, "a", StartResult::kHit);
  builder.Apply(builder.Decide());
  const Plan again = builder.Decide();
  EXPECT_TRUE(again.starts_counted.empty());
  EXPECT_EQ(again.status.starts.counts.hit, 1);
}

TEST(Starts, HitProvesOnlyTheRevisionOfItsPod) {
  SnapshotBuilder builder = Warm();
  for (const std::string name : {"a", "b"}) {
    builder.Pod({.name = name,
                 .node = "n1",
                 .revision = name == "a" ? "r1" : "r2",
                 .created = 80,
                 .started = 90,
                 .ready = 95});
  }
  Evidence(builder, "a", StartResult::kHit);
  Evidence(builder, "b", StartResult::kInert);
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.starts_counted.size(), 2U);
  EXPECT_EQ(plan.status.injection->warm_revisions, std::vector<std::string>{"r1"});
}

TEST(Starts, AnnotatedStartIsNotCountedAgain) {
  SnapshotBuilder builder = Warm();
  builder.Pod({.name = "a",
               .node = "n1",
               .created = 80,
               .started = 90,
               .ready = 95,
               .annotations = {{"cachewarm.io/start", R"({"result":"hit"})"}}});
  Evidence(builder, "a", StartResult::kHit);
  EXPECT_TRUE(builder.Decide().starts_counted.empty());
}

TEST(Starts, PodIsAnnotatedWithItsResult) {
  SnapshotBuilder builder = Warm();
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 95});
  Evidence(builder, "a", StartResult::kHit);
  const Plan plan = builder.Decide();
  const PodAnnotation* note = fakes::AnnotationOf(plan, "a", "cachewarm.io/start");
  ASSERT_NE(note, nullptr);
  const codec::Json value = codec::Json::parse(note->value);
  EXPECT_EQ(value["result"], "hit");
  EXPECT_EQ(value["startSeconds"], 5);
}

struct ResultCase {
  const char* name;
  StartResult seen;
  int published;  // publication of the bundle; the pod starts at 90
  bool active;
  int restarts;
  StartResult counted;
};

class Results : public testing::TestWithParam<ResultCase> {};

TEST_P(Results, ResultMatchesEvidence) {
  const ResultCase& c = GetParam();
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.Bundle(
      {.node = "n1",
       .published = c.published,
       .active = c.active ? std::vector<std::string>{"n1"} : std::vector<std::string>{}});
  builder.Pod({.name = "a",
               .node = "n1",
               .created = 80,
               .started = 90,
               .ready = 95,
               .restarts = c.restarts});
  Evidence(builder, "a", c.seen);
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.starts_counted.size(), 1U);
  EXPECT_EQ(api::Name(plan.starts_counted[0].result), api::Name(c.counted));
}

INSTANTIATE_TEST_SUITE_P(
    All, Results,
    testing::Values(
        ResultCase{"hit", StartResult::kHit, 10, true, 0, StartResult::kHit},
        ResultCase{"partial", StartResult::kPartial, 10, true, 0, StartResult::kPartial},
        ResultCase{"inert", StartResult::kInert, 10, true, 0, StartResult::kInert},
        ResultCase{"hollow", StartResult::kHollow, 10, true, 0, StartResult::kHollow},
        ResultCase{"miss", StartResult::kMiss, 10, true, 0, StartResult::kMiss},
        ResultCase{"cold_agent", StartResult::kCold, 10, true, 0, StartResult::kCold},
        ResultCase{"before_bundle", StartResult::kMiss, 91, true, 0, StartResult::kCold},
        ResultCase{"not_active", StartResult::kMiss, 10, false, 0, StartResult::kCold},
        ResultCase{"restarted", StartResult::kHit, 10, true, 1, StartResult::kUnknown}),
    [](const auto& each) { return each.param.name; });

TEST(Starts, BuilderIsCountedAsBuilder) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 98});
  Evidence(builder, "a", StartResult::kMiss, 6.5);
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.starts_counted.size(), 1U);
  EXPECT_EQ(plan.starts_counted[0].result, StartResult::kBuilder);
  EXPECT_DOUBLE_EQ(plan.starts_counted[0].compile_seconds, 6.5);
  EXPECT_DOUBLE_EQ(plan.starts_counted[0].compiled_after_seconds, 8.5);
  EXPECT_EQ(plan.status.starts.counts.builder, 1);
  EXPECT_EQ(plan.status.summary.hit, "") << "builders are not in the hit rate";
}

TEST(Starts, MissingEvidenceCountsAsUnknownAfterTimeout) {
  SnapshotBuilder builder = Warm();
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 95});
  builder.Now(95 + 89);
  const Plan waiting = builder.Decide();
  EXPECT_TRUE(waiting.starts_counted.empty());
  EXPECT_LE(*waiting.requeue_after, std::chrono::seconds(1));
  builder.Now(95 + 90);
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.starts_counted.size(), 1U);
  EXPECT_EQ(plan.starts_counted[0].result, StartResult::kUnknown);
  EXPECT_EQ(plan.status.summary.hit, "") << "unknown is counted apart";
}

TEST(Starts, HoldIsReadFromReleasedPod) {
  SnapshotBuilder builder = Warm();
  builder.Pod({.name = "a",
               .node = "n1",
               .created = 80,
               .started = 90,
               .ready = 95,
               .annotations = {{"cachewarm.io/held-seconds", "7.250"}}});
  Evidence(builder, "a", StartResult::kHit);
  EXPECT_DOUBLE_EQ(builder.Decide().starts_counted[0].hold_seconds, 7.25);
}

TEST(Starts, AbsurdHoldIsIgnored) {
  for (const char* text : {"-5", "1e30", "nan", "7x", ""}) {
    SnapshotBuilder builder = Warm();
    builder.Pod({.name = "a",
                 .node = "n1",
                 .created = 80,
                 .started = 90,
                 .ready = 95,
                 .annotations = {{"cachewarm.io/held-seconds", text}}});
    Evidence(builder, "a", StartResult::kHit);
    EXPECT_EQ(builder.Decide().starts_counted[0].hold_seconds, 0) << text;
  }
}

TEST(Starts, PodsWithoutCacheDirectoryAreNotCounted) {
  SnapshotBuilder builder = Warm();
  builder.Pod(
      {.name = "a", .node = "n1", .injected = false, .created = 80, .started = 90, .ready = 95});
  Evidence(builder, "a", StartResult::kMiss);
  const Plan plan = builder.Decide();
  EXPECT_TRUE(plan.starts_counted.empty());
  EXPECT_TRUE(plan.annotations.empty());
}

TEST(Starts, RingKeepsNewest256Starts) {
  SnapshotBuilder builder = Warm();
  for (int i = 0; i < 256; ++i) {
    builder.status().starts.counted_pod_uids.push_back("old-" + std::to_string(i));
  }
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 95});
  Evidence(builder, "a", StartResult::kHit);
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.starts.counted_pod_uids.size(), 256U);
  EXPECT_EQ(plan.status.starts.counted_pod_uids.back(), "uid-a");
  EXPECT_EQ(plan.status.starts.counted_pod_uids.front(), "old-1");
}

TEST(Starts, BurstIsCountedInPortions) {
  SnapshotBuilder builder = Warm();
  for (int i = 0; i < 40; ++i) {
    const std::string name = "p" + std::to_string(i);
    builder.Pod({.name = name, .node = "n1", .created = 80, .started = 90, .ready = 95});
    Evidence(builder, name, StartResult::kHit);
  }
  const Plan first = builder.Decide();
  EXPECT_EQ(first.starts_counted.size(), 32U);
  EXPECT_LE(*first.requeue_after, std::chrono::milliseconds(100));
  builder.Apply(first);
  EXPECT_EQ(builder.Decide().starts_counted.size(), 8U);
}

TEST(Starts, NothingIsCountedTwiceHoweverManyAnnotationsAreRejected) {
  SnapshotBuilder builder = Warm();
  for (int i = 0; i < 300; ++i) {
    const std::string name = "p" + std::to_string(i);
    builder.Pod({.name = name, .node = "n1", .created = 80, .started = 90, .ready = 95});
  }
  builder.Now(200);  // without evidence
  std::set<std::string> counted;
  for (int round = 0; round < 20; ++round) {
    const Plan plan = builder.Decide();
    for (const StartSample& start : plan.starts_counted) {
      EXPECT_TRUE(counted.insert(start.pod_uid).second) << start.pod << " is counted again";
    }
    builder.Apply(plan);
  }
  EXPECT_EQ(counted.size(), 64U);
  EXPECT_GE(*builder.Decide().requeue_after, std::chrono::seconds(30)) << "no busy loop";
}

TEST(Starts, CountingGoesOnOnceTheAnnotationsAreWritten) {
  SnapshotBuilder builder = Warm();
  std::vector<fakes::PodSetup> pods;
  for (int i = 0; i < 300; ++i) {
    pods.push_back(
        {.name = "p" + std::to_string(i), .node = "n1", .created = 80, .started = 90, .ready = 95});
    builder.Pod(pods.back());
  }
  builder.Now(200);
  size_t counted = 0;
  for (int round = 0; round < 20; ++round) {
    const Plan plan = builder.Decide();
    counted += plan.starts_counted.size();
    builder.Apply(plan);
    for (const PodAnnotation& annotation : plan.annotations) {
      for (fakes::PodSetup& pod : pods) {
        if (pod.name == annotation.pod) {
          pod.annotations[annotation.key] = annotation.value;
          builder.Pod(pod);
        }
      }
    }
  }
  EXPECT_EQ(counted, 300U);
}

TEST(Starts, NodeObservesAtMost64PodsOfAllWarmups) {
  SnapshotBuilder builder = Warm();
  for (int i = 0; i < 60; ++i) {
    builder.cache("n1").spec.starts.push_back(
        {.pod_uid = "other-" + std::to_string(i), .warmup_uid = "other"});
  }
  for (int i = 0; i < 9; ++i) {
    builder.Pod({.name = "p" + std::to_string(i), .node = "n1", .created = 80, .started = 90});
  }
  EXPECT_EQ(fakes::EntriesOf(builder.Decide(), "n1")->spec.starts.size(), 4U);
}

// One cold start that was no builder, and five warm ones.
TEST(Starts, SumsAreExactAfterOneColdAndFiveWarmStarts) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.Pod({.name = "builder", .node = "n1", .created = 0, .started = 1, .ready = 43});
  builder.Pod({.name = "cold", .node = "n1", .created = 2, .started = 3, .ready = 43});
  Evidence(builder, "builder", StartResult::kMiss, 33);
  Evidence(builder, "cold", StartResult::kMiss, 31);
  builder.Apply(builder.Decide());
  builder.Bundle({.node = "n1", .published = 60, .active = {"n1"}});
  builder.status().builders[0].state = api::BuilderState::kCaptured;
  for (int i = 0; i < 5; ++i) {
    const std::string name = "warm-" + std::to_string(i);
    const int start = 70 + 10 * i;
    builder.Pod({.name = name,
                 .node = "n1",
                 .created = start - 2,
                 .started = start,
                 .ready = start + 5,
                 .annotations = {{"cachewarm.io/held-seconds", "1.0"}}});
    Evidence(builder, name, StartResult::kHit);
    builder.Now(start + 6);
    builder.Apply(builder.Decide());
  }
  const api::Starts& starts = builder.status().starts;
  EXPECT_EQ(starts.counts, (api::StartCounts{.builder = 1, .cold = 1, .hit = 5}));
  EXPECT_DOUBLE_EQ(starts.cold_median_seconds, 40);
  EXPECT_DOUBLE_EQ(starts.warm_median_seconds, 5);
  // min(40 − (1 + 5), the median of 33 and 35 s to the last compiled file) each; the cold one was
  // not held.
  EXPECT_DOUBLE_EQ(starts.saved_seconds, 5 * 34);
  EXPECT_DOUBLE_EQ(starts.lost_seconds, 0);
  EXPECT_EQ(builder.status().summary.hit, "83%");
  EXPECT_EQ(builder.status().summary.partial, "0%");
  EXPECT_EQ(builder.status().summary.saved, "2m50s");
}

}  // namespace
}  // namespace cachewarm::plan
