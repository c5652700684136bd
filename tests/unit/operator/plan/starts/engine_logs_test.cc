// SPDX-License-Identifier: Apache-2.0
// Tests of which pods the log is read, and how the reports of engines reach the status.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using api::EngineLog;
using api::EngineStart;
using api::StartResult;
using fakes::SnapshotBuilder;

SnapshotBuilder Warm() {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.Bundle({.node = "n1", .published = 10, .active = {"n1"}});
  builder.in().settings.engine_logs = true;
  return builder;
}

void Evidence(SnapshotBuilder& builder, const std::string& pod, StartResult result) {
  builder.cache("n1").status.starts.push_back({.pod_uid = "uid-" + pod, .result = result});
}

std::vector<std::string> Reads(const Plan& plan) {
  std::vector<std::string> pods;
  for (const DesiredLogRead& read : plan.log_reads) {
    pods.push_back(read.pod + "/" + read.container);
  }
  return pods;
}

using Pods = std::vector<std::string>;

TEST(EngineLogs, LogIsReadOnceTheStartHasCompleted) {
  SnapshotBuilder builder = Warm();
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  EXPECT_EQ(Reads(builder.Decide()), Pods{});
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 95});
  const Plan plan = builder.Decide();
  EXPECT_EQ(Reads(plan), Pods{"a/server"});
  EXPECT_EQ(plan.log_reads[0].pod_uid, "uid-a");
}

TEST(EngineLogs, NothingIsReadWithoutTheSetting) {
  SnapshotBuilder builder = Warm();
  builder.in().settings.engine_logs = false;
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 95});
  Evidence(builder, "a", StartResult::kHit);
  EXPECT_EQ(Reads(builder.Decide()), Pods{});
}

TEST(EngineLogs, ReportIsAddedToTheStartThatIsCounted) {
  SnapshotBuilder builder = Warm();
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 95});
  const EngineStart start{
      .log = EngineLog::kFound, .compile_seconds = 12.5, .kv_cache_tokens = 188'640};
  builder.in().engine_reports = {{.pod_uid = "uid-b", .start = {}},
                                 {.pod_uid = "uid-a", .start = start}};
  Plan plan = builder.Decide();
  EXPECT_EQ(Reads(plan), Pods{"a/server"}) << "the answer is kept until the start is counted";
  EXPECT_TRUE(plan.engines_reported.empty());
  Evidence(builder, "a", StartResult::kHit);
  plan = builder.Decide();
  ASSERT_EQ(plan.status.starts.recent.size(), 1U);
  EXPECT_EQ(plan.status.starts.recent[0].engine, start);
  EXPECT_TRUE(plan.status_changed);
  ASSERT_EQ(plan.engines_reported.size(), 1U);
  EXPECT_EQ(plan.engines_reported[0].result, StartResult::kHit);
  EXPECT_EQ(Reads(plan), Pods{}) << "the answer is in the status";
  builder.status() = plan.status;
  plan = builder.Decide();
  EXPECT_TRUE(plan.engines_reported.empty()) << "reported once";
  EXPECT_EQ(Reads(plan), Pods{});
  EXPECT_EQ(plan.status.starts.recent[0].engine, start);
}

TEST(EngineLogs, ReportAfterTheStartWasCountedIsAdded) {
  SnapshotBuilder builder = Warm();
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 95});
  Evidence(builder, "a", StartResult::kHit);
  builder.status() = builder.Decide().status;
  ASSERT_EQ(Reads(builder.Decide()), Pods{"a/server"});
  builder.in().engine_reports = {{.pod_uid = "uid-a", .start = {.log = EngineLog::kUnreadable}}};
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.starts.recent[0].engine->log, EngineLog::kUnreadable);
  EXPECT_EQ(Reads(plan), Pods{}) << "an unreadable log is not read again";
}

TEST(EngineLogs, ColdPodOfTheWorkloadIsReadOnceItIsCounted) {
  SnapshotBuilder builder = Warm();
  builder.status().conditions = {{.type = "Ready",
                                  .status = "True",
                                  .reason = "Injecting",
                                  .observed_generation = 1,
                                  .last_transition_time = fakes::At(50)}};
  builder.Pod({.name = "other",
               .node = "n1",
               .injected = false,
               .created = 49,
               .started = 60,
               .ready = 70});
  EXPECT_EQ(Reads(builder.Decide()), Pods{}) << "created before the warmup injected";
  builder.Pod(
      {.name = "cold", .node = "n1", .injected = false, .created = 55, .started = 60, .ready = 70});
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.starts_counted.size(), 1U);
  EXPECT_EQ(Reads(plan), Pods{"cold/server"});
}

TEST(EngineLogs, RestartedAndOldStartsAndProofsAreNotRead) {
  SnapshotBuilder builder = Warm();
  builder.Pod(
      {.name = "crashed", .node = "n1", .created = 80, .started = 90, .ready = 95, .restarts = 1});
  builder.Pod({.name = "llama-1-proof-x",
               .node = "n1",
               .created = 80,
               .started = 90,
               .ready = 95,
               .job = "llama-1-proof"});
  EXPECT_EQ(Reads(builder.Decide()), Pods{});
  builder.Pod({.name = "old", .node = "n1", .created = 80, .started = 90, .ready = 95});
  builder.Now(95 + 599);
  EXPECT_EQ(Reads(builder.Decide()), Pods{"old/server"});
  builder.Now(95 + 600);
  EXPECT_EQ(Reads(builder.Decide()), Pods{}) << "kubelet may have rotated the log";
}

TEST(EngineLogs, FewLogsOfAWarmupAreReadAtATime) {
  SnapshotBuilder builder = Warm();
  for (int i = 0; i < 40; ++i) {
    builder.Pod(
        {.name = "p" + std::to_string(i), .node = "n1", .created = 80, .started = 90, .ready = 95});
  }
  EXPECT_EQ(builder.Decide().log_reads.size(), 16U);
}

}  // namespace
}  // namespace cachewarm::plan
