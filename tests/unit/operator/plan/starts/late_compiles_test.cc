// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/starts/late_compiles.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/api/json/limits.h"
#include "operator/plan/starts/totals.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::At;
using fakes::SnapshotBuilder;

// A warmup that injects; its node n1 has an entry in NodeCache.spec. It is second 100.
SnapshotBuilder Injecting() {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.Now(100);
  builder.Apply(builder.Decide());
  return builder;
}

// Entries that were compiled from second 40 to 50.
void Report(SnapshotBuilder& builder, const std::string& node, int64_t report, int entries) {
  builder.reported(node).late_compiles = {
      .report = report, .entries = entries, .first_time = At(40), .last_time = At(50)};
}

int64_t Total(const Plan& plan, const std::string& gpu_type = "cpu") {
  api::Starts starts = plan.status.starts;
  return TotalsOf(starts, gpu_type).late_compiles;
}

int64_t Acknowledged(SnapshotBuilder& builder, const std::string& node) {
  return builder.cache(node).spec.warmups.at(0).late_counted;
}

TEST(LateCompiles, ReportIsCountedOnceAndAcknowledged) {
  SnapshotBuilder builder = Injecting();
  Report(builder, "n1", 7, 3);
  const Plan plan = builder.Decide();
  EXPECT_TRUE(plan.status_changed);
  EXPECT_EQ(Total(plan), 3);
  builder.Apply(plan);
  EXPECT_EQ(Acknowledged(builder, "n1"), 7);
  for (int i = 0; i < 2; ++i) {
    const Plan next = builder.Decide();
    EXPECT_EQ(Total(next), 3);
    EXPECT_FALSE(next.status_changed);
    EXPECT_TRUE(next.nodes.empty());
  }
}

TEST(LateCompiles, LeaderThatEndsAfterTheStatusCountsNothingTwice) {
  SnapshotBuilder builder = Injecting();
  Report(builder, "n1", 7, 3);
  builder.status() = builder.Decide().status;  // the NodeCache was not written
  const Plan plan = builder.Decide();
  EXPECT_EQ(Total(plan), 3);
  builder.Apply(plan);
  EXPECT_EQ(Acknowledged(builder, "n1"), 7);
}

TEST(LateCompiles, ReportWhoseEntryWasMadeAgainIsNotCountedTwice) {
  SnapshotBuilder builder = Injecting();
  Report(builder, "n1", 7, 3);
  builder.Apply(builder.Decide());
  builder.cache("n1").spec.warmups.clear();
  const Plan plan = builder.Decide();
  EXPECT_EQ(Total(plan), 3);
  builder.Apply(plan);
  EXPECT_EQ(Acknowledged(builder, "n1"), 7);
}

TEST(LateCompiles, NextReportIsAdded) {
  SnapshotBuilder builder = Injecting();
  Report(builder, "n1", 7, 3);
  builder.Apply(builder.Decide());
  builder.reported("n1").late_compiles = {};
  builder.Apply(builder.Decide());
  EXPECT_TRUE(builder.status().starts.late_reports.empty());
  EXPECT_EQ(Acknowledged(builder, "n1"), 7) << "the agent may show an old report once more";
  Report(builder, "n1", 9, 2);
  const Plan plan = builder.Decide();
  EXPECT_EQ(Total(plan), 5);
  builder.Apply(plan);
  EXPECT_EQ(Acknowledged(builder, "n1"), 9);
}

TEST(LateCompiles, TotalsAreThoseOfTheGpuTypeOfTheNode) {
  SnapshotBuilder builder = Injecting();
  builder.Node({.name = "n2", .gpu_type = fakes::kH100});
  builder.Apply(builder.Decide());
  Report(builder, "n1", 7, 3);
  Report(builder, "n2", 7, 20);
  const Plan plan = builder.Decide();
  EXPECT_EQ(Total(plan, "cpu"), 3);
  EXPECT_EQ(Total(plan, fakes::kH100), 20);
}

TEST(LateCompiles, OfAPausedWarmupAreCountedToo) {
  SnapshotBuilder builder = Injecting();
  builder.warmup().spec.paused = true;
  Report(builder, "n1", 7, 3);
  const Plan plan = builder.Decide();
  EXPECT_EQ(Total(plan), 3);
  builder.Apply(plan);
  EXPECT_EQ(Acknowledged(builder, "n1"), 7);
}

TEST(LateCompiles, ReportsAboveTheLimitAreCountedLater) {
  SnapshotBuilder builder = Injecting();
  constexpr int kNodes = static_cast<int>(api::json::kLateReportsMax) + 3;
  for (int i = 0; i < kNodes; ++i) {
    builder.Node({.name = "m" + std::to_string(i)});
  }
  builder.Apply(builder.Decide());
  for (int i = 0; i < kNodes; ++i) {
    Report(builder, "m" + std::to_string(i), 7, 1);
  }
  builder.Apply(builder.Decide());
  EXPECT_EQ(builder.status().starts.late_reports.size(), api::json::kLateReportsMax);
  int waiting = 0;
  for (int i = 0; i < kNodes; ++i) {
    const std::string node = "m" + std::to_string(i);
    if (Acknowledged(builder, node) == 7) {
      builder.reported(node).late_compiles = {};
    } else {
      ++waiting;
    }
  }
  EXPECT_EQ(waiting, 3);
  EXPECT_EQ(Total(builder.Decide()), kNodes);
}

TEST(LateCompiles, NumberOfADeletedNodeIsDropped) {
  SnapshotBuilder builder = Injecting();
  builder.status().starts.late_reports = {{.node = "gone", .report = 7}};
  EXPECT_TRUE(builder.Decide().status.starts.late_reports.empty());
}

// A start may not have been observed if the operator did not run when it began.
struct UnobservedCase {
  const char* name;
  fakes::PodSetup pod;
  bool has_window = false;
  int64_t counted = 0;
};

class LateCompilesBesideAStart : public ::testing::TestWithParam<UnobservedCase> {};

TEST_P(LateCompilesBesideAStart, AreCountedOnlyIfTheStartCannotHaveCompiledThem) {
  SnapshotBuilder builder = Injecting();
  fakes::PodSetup pod = GetParam().pod;
  pod.name = "a";
  pod.node = "n1";
  builder.Pod(pod);
  if (GetParam().has_window) {
    builder.cache("n1").spec.starts = {{.pod_uid = "uid-a", .warmup_uid = builder.warmup().uid}};
  }
  Report(builder, "n1", 7, 3);
  const Plan plan = builder.Decide();
  EXPECT_EQ(Total(plan), GetParam().counted);
  builder.Apply(plan);
  EXPECT_EQ(Acknowledged(builder, "n1"), 7) << "the agent reports the next ones";
}

INSTANTIATE_TEST_SUITE_P(
    Cases, LateCompilesBesideAStart,
    ::testing::Values(
        UnobservedCase{.name = "Starting", .pod = {.created = 20, .started = 30}},
        UnobservedCase{.name = "StartingWithAWindow",
                       .pod = {.created = 20, .started = 30},
                       .has_window = true,
                       .counted = 3},
        UnobservedCase{
            .name = "StartedAfterwards", .pod = {.created = 55, .started = 60}, .counted = 3},
        UnobservedCase{.name = "ReadyBefore",
                       .pod = {.created = 10, .started = 20, .ready = 30},
                       .counted = 3},
        UnobservedCase{.name = "ReadyDuringTheCompiles",
                       .pod = {.created = 10, .started = 20, .ready = 45}},
        UnobservedCase{.name = "OfAnUnknownResult",
                       .pod = {.created = 10,
                               .started = 20,
                               .ready = 45,
                               .annotations = {{"cachewarm.io/start", R"({"result":"unknown"})"}}}},
        UnobservedCase{.name = "CountedAsHit",
                       .pod = {.created = 10,
                               .started = 20,
                               .ready = 45,
                               .annotations = {{"cachewarm.io/start", R"({"result":"hit"})"}}},
                       .counted = 3},
        UnobservedCase{.name = "Restarted",
                       .pod = {.created = 10,
                               .started = 35,
                               .restarts = 1,
                               .annotations = {{"cachewarm.io/start", R"({"result":"hit"})"}}}},
        UnobservedCase{.name = "NotInjected",
                       .pod = {.injected = false, .created = 20, .started = 30},
                       .counted = 3}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace cachewarm::plan
