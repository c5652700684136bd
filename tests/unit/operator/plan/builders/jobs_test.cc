// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "lib/api/names.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/snapshot_builder.h"
#include "tests/unit/operator/plan/builders/jobs_fixture.h"

namespace cachewarm::plan {
namespace {

using api::BuilderState;
using fakes::At;
using fakes::SnapshotBuilder;

// Returns the nodes that the Job's pod may use.
std::vector<std::string> NodesOf(const DesiredJob& job) {
  const auto& terms =
      (*job.object)["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
                   ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  return terms[0]["matchExpressions"][0]["values"].get<std::vector<std::string>>();
}

struct ModeCase {
  const char* name;
  api::Builder mode;
  WorkloadKind kind;
  int replicas;
  bool job;
};

class BuilderMode : public testing::TestWithParam<ModeCase> {};

TEST_P(BuilderMode, JobIsCreatedOnlyWithoutElectablePods) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.in().workload.kind = GetParam().kind;
  builder.in().workload.replicas = GetParam().replicas;
  builder.warmup().spec.compile.builder = GetParam().mode;
  builder.Accepted();
  EXPECT_EQ(builder.Decide().jobs_to_create.size(), GetParam().job ? 1U : 0U);
}

INSTANTIATE_TEST_SUITE_P(
    All, BuilderMode,
    testing::Values(
        ModeCase{"auto_replicas", api::Builder::kAuto, WorkloadKind::kDeployment, 3, false},
        ModeCase{"auto_zero", api::Builder::kAuto, WorkloadKind::kDeployment, 0, true},
        ModeCase{"auto_zero_set", api::Builder::kAuto, WorkloadKind::kStatefulSet, 0, true},
        ModeCase{"auto_template", api::Builder::kAuto, WorkloadKind::kTemplate, 0, true},
        ModeCase{"auto_zero_group", api::Builder::kAuto, WorkloadKind::kGroup, 0, false},
        ModeCase{"job_of_a_group", api::Builder::kJob, WorkloadKind::kGroup, 2, false},
        ModeCase{"job", api::Builder::kJob, WorkloadKind::kDeployment, 3, true},
        ModeCase{"first_pod", api::Builder::kFirstPod, WorkloadKind::kDeployment, 0, false},
        ModeCase{"first_pod_template", api::Builder::kFirstPod, WorkloadKind::kTemplate, 0, false}),
    [](const auto& each) { return each.param.name; });

TEST(BuilderJobs, EachTypeGetsOneJobOnItsNodes) {
  SnapshotBuilder builder = ScaledDown();
  builder.Node({.name = "n2", .cpu_class = fakes::kAvx2});
  builder.Node({.name = "n3", .cpu_class = fakes::kAvx2});
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.jobs_to_create.size(), 2U);
  EXPECT_NE(plan.jobs_to_create[0].name, plan.jobs_to_create[1].name);
  std::set<size_t> sizes;
  for (const DesiredJob& job : plan.jobs_to_create) {
    sizes.insert(NodesOf(job).size());
  }
  EXPECT_EQ(sizes, (std::set<size_t>{1, 2}));
}

TEST(BuilderJobs, JobNamesNodesWithCapacityFirst) {
  SnapshotBuilder builder;
  for (int i = 0; i < 70; ++i) {
    builder.Node({.name = "n" + std::to_string(100 + i), .pods = i < 66 ? 0 : 1});
  }
  builder.in().workload.replicas = 0;
  builder.Accepted();
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.jobs_to_create.size(), 1U);
  const auto names = NodesOf(plan.jobs_to_create[0]);
  ASSERT_EQ(names.size(), 64U);
  for (const char* node : {"n166", "n167", "n168", "n169"}) {
    EXPECT_TRUE(std::find(names.begin(), names.end(), node) != names.end()) << node;
  }
  builder.status() = plan.status;
  const Plan again = builder.Decide();
  ASSERT_EQ(again.jobs_to_create.size(), 1U);
  EXPECT_EQ(NodesOf(again.jobs_to_create[0]), names) << "also when it is requested again";
}

TEST(BuilderJobs, NameContainsWarmupKeyAndAttempt) {
  SnapshotBuilder builder = ScaledDown();
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.jobs_to_create[0].name, "llama-" + builder.Key("n1").substr(0, 8) + "-1");
  EXPECT_EQ(plan.status.builders[0].job, plan.jobs_to_create[0].name);
}

TEST(BuilderJobs, UnseenJobIsRequestedAgainWithSameName) {
  SnapshotBuilder builder = ScaledDown();
  const Plan first = builder.Decide();
  builder.status() = first.status;
  const Plan again = builder.Decide();
  ASSERT_EQ(again.jobs_to_create.size(), 1U);
  EXPECT_EQ(again.jobs_to_create[0].name, first.jobs_to_create[0].name);
  EXPECT_EQ(again.status.builders, first.status.builders);
}

TEST(BuilderJobs, PodOfJobBecomesBuilderWhenItStarts) {
  SnapshotBuilder builder = ScaledDown();
  const std::string job = Apply(builder, builder.Decide());
  builder.Pod({.name = "b", .node = "n1", .created = 101, .started = 103, .job = job});
  builder.Now(104);
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.builders[0].pod_uid, "uid-b");
  EXPECT_TRUE(plan.jobs_to_create.empty());
  EXPECT_TRUE(plan.jobs_to_delete.empty());
  ASSERT_NE(fakes::EntriesOf(plan, "n1"), nullptr);
  EXPECT_EQ(fakes::EntriesOf(plan, "n1")->spec.captures[0].pod_uid, "uid-b");
}

TEST(BuilderJobs, ReadyContainersCountWithoutReadinessGate) {
  SnapshotBuilder builder = ScaledDown();
  const std::string job = Apply(builder, builder.Decide());
  builder.Pod(
      {.name = "b", .node = "n1", .created = 101, .started = 103, .ready = 120, .job = job});
  builder.Now(121);
  const Plan plan = builder.Decide();
  EXPECT_EQ(fakes::EntriesOf(plan, "n1")->spec.captures[0].ready_time, At(120));
}

TEST(BuilderJobs, RunToCompletionCopyMayExitBeforeCapture) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.in().workload.kind = WorkloadKind::kTemplate;
  builder.in().workload.replicas = 0;
  builder.pod_template()["spec"]["restartPolicy"] = "Never";
  builder.pod_template()["spec"]["containers"][0].erase("readinessProbe");
  builder.Accepted();
  const std::string job = Apply(builder, builder.Decide());
  builder.Pod({.name = "b",
               .node = "n1",
               .created = 101,
               .started = 103,
               .exit_code = 0,
               .ended = 110,
               .job = job,
               .restart_policy = "Never",
               .probe = false});
  builder.Now(111);
  const Plan plan = builder.Decide();
  ASSERT_NE(fakes::EntriesOf(plan, "n1"), nullptr);
  ASSERT_EQ(fakes::EntriesOf(plan, "n1")->spec.captures.size(), 1U);
  EXPECT_EQ(fakes::EntriesOf(plan, "n1")->spec.captures[0].ready_time, At(110));
}

TEST(BuilderJobs, FailedJobIsRetriedUnderNewNameAndKeepsMessage) {
  SnapshotBuilder builder = ScaledDown();
  const std::string job = Apply(builder, builder.Decide());
  builder.in().jobs[0].failed = true;
  builder.in().jobs[0].message = "BackoffLimitExceeded";
  builder.Pod({.name = "b",
               .node = "n1",
               .created = 101,
               .started = 103,
               .exit_code = 2,
               .job = job,
               .words = "CUDA out of memory"});
  builder.Now(110);
  const Plan failed = builder.Decide();
  EXPECT_EQ(failed.status.builders[0].state, BuilderState::kFailed);
  EXPECT_EQ(failed.status.builders[0].reason, "BuilderCrashed");
  EXPECT_NE(failed.status.builders[0].message.find("out of memory"), std::string::npos);
  EXPECT_EQ(failed.jobs_to_delete, std::vector<std::string>{job});
  builder.status() = failed.status;
  builder.in().jobs.clear();
  builder.in().pods.clear();
  builder.Now(121);
  const Plan next = builder.Decide();
  ASSERT_EQ(next.jobs_to_create.size(), 1U);
  EXPECT_TRUE(next.jobs_to_create[0].name.ends_with("-2"));
}

TEST(BuilderJobs, NewTemplateIgnoresJobsOfOldTemplate) {
  SnapshotBuilder builder = ScaledDown();
  const std::string job = Apply(builder, builder.Decide());
  builder.in().jobs[0].failed = true;
  builder.pod_template()["spec"]["containers"][0]["args"] = {"--other"};
  builder.Now(110);
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.jobs_to_delete, std::vector<std::string>{job});
  ASSERT_EQ(plan.jobs_to_create.size(), 1U) << "a new template is tried at once";
  EXPECT_TRUE(plan.jobs_to_create[0].name.ends_with("-2")) << plan.jobs_to_create[0].name;
  EXPECT_EQ(plan.status.builders[0].attempt, 2);
}

TEST(BuilderJobs, GpuSecondsOfAJobCountFromTheStartOfItsContainer) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1", .gpus = 2});
  builder.in().workload.replicas = 0;
  builder.pod_template()["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 2;
  builder.Accepted();
  const std::string job = Apply(builder, builder.Decide());
  builder.Pod({.name = "b", .node = "n1", .gpus = 2, .created = 101, .started = 103, .job = job});
  builder.Now(104);
  builder.status() = builder.Decide().status;
  EXPECT_EQ(builder.status().builders[0].pod_uid, "uid-b");
  builder.warmup().spec.paused = true;
  builder.Now(113);
  const Plan ended = builder.Decide();
  ASSERT_EQ(ended.builds_finished.size(), 1U);
  EXPECT_DOUBLE_EQ(ended.builds_finished[0].gpu_seconds, 2 * 10);
  ASSERT_EQ(ended.status.starts.gpu_types.size(), 1U);
  EXPECT_DOUBLE_EQ(ended.status.starts.gpu_types[0].builder_gpu_seconds, 2 * 10);
}

// Otherwise it would occupy its device and its builder slot for the whole pause.
TEST(BuilderJobs, PauseEndsJobAndResumeCreatesItAgain) {
  SnapshotBuilder builder = ScaledDown();
  const std::string job = Apply(builder, builder.Decide());
  builder.Pod({.name = "b", .node = "n1", .created = 101, .started = 103, .job = job});
  builder.warmup().spec.paused = true;
  builder.Now(110);
  const Plan paused = builder.Decide();
  EXPECT_EQ(paused.jobs_to_delete, std::vector<std::string>{job});
  EXPECT_EQ(paused.status.builders[0].state, BuilderState::kFailed);
  EXPECT_EQ(paused.status.builders[0].reason, "BuilderLost");
  EXPECT_EQ(paused.builds_finished.size(), 1U);
  builder.status() = paused.status;
  builder.in().jobs.clear();
  builder.in().pods.clear();
  EXPECT_TRUE(builder.Decide().builds_finished.empty()) << "it exits once";
  builder.warmup().spec.paused = false;
  builder.Now(121);
  EXPECT_EQ(builder.Decide().jobs_to_create.size(), 1U);
}

TEST(BuilderJobs, UnscheduledJobFailsAfterPendingSeconds) {
  SnapshotBuilder builder = ScaledDown();
  Apply(builder, builder.Decide());
  builder.Now(100 + 600);
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.builders[0].reason, "BuilderPending");
  EXPECT_EQ(plan.jobs_to_delete.size(), 1U);
}

TEST(BuilderJobs, JobIsDeletedOnceCaptured) {
  SnapshotBuilder builder = ScaledDown();
  const std::string job = Apply(builder, builder.Decide());
  builder.status().builders[0].state = BuilderState::kCaptured;
  builder.Bundle({.node = "n1", .published = 99, .active = {"n1"}});
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.jobs_to_delete, std::vector<std::string>{job});
}

// Savings are measured against the builder's start; without it they would stay 0.
TEST(BuilderJobs, JobStaysUntilItsStartIsCounted) {
  SnapshotBuilder builder = ScaledDown();
  const std::string job = Apply(builder, builder.Decide());
  builder.Pod(
      {.name = "b", .node = "n1", .created = 101, .started = 103, .ready = 120, .job = job});
  builder.status().builders[0].state = BuilderState::kCaptured;
  builder.status().builders[0].pod_uid = "uid-b";
  builder.status().builders[0].node = "n1";
  builder.Bundle({.node = "n1", .published = 122, .active = {"n1"}});
  builder.Now(123);
  const Plan waits = builder.Decide();
  EXPECT_TRUE(waits.jobs_to_delete.empty());
  EXPECT_TRUE(waits.requeue_after.has_value());

  builder.Now(120 + 90);  // the agent reported nothing
  const Plan counts = builder.Decide();
  ASSERT_EQ(counts.starts_counted.size(), 1U);
  EXPECT_EQ(counts.starts_counted[0].result, api::StartResult::kBuilder);
  EXPECT_EQ(counts.starts_counted[0].start_seconds, 17);
  EXPECT_EQ(counts.status.starts.cold_median_seconds, 17);

  builder.status() = counts.status;
  EXPECT_EQ(builder.Decide().jobs_to_delete, std::vector<std::string>{job});
}

TEST(BuilderJobs, JobBeingDeletedIsNotDeletedAgain) {
  SnapshotBuilder builder = ScaledDown();
  builder.Bundle({.node = "n1", .published = 99, .active = {"n1"}});
  builder.in().jobs = {{.name = "llama-old-1", .deleting = true}};
  EXPECT_TRUE(builder.Decide().jobs_to_delete.empty());
}

TEST(BuilderJobs, NewTemplateIsBuiltAtOnceAfterFailures) {
  SnapshotBuilder builder = ScaledDown();
  builder.status().builders = {{.key = builder.Key("n1"),
                                .revision = "t-before",
                                .state = BuilderState::kFailed,
                                .attempt = 4,
                                .elected_time = At(90),
                                .finished_time = At(99),
                                .reason = "BuilderTimeout"}};
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.jobs_to_create.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].attempt, 1);
}

TEST(BuilderJobs, JobHasOverridesThenVolumeAndPriority) {
  SnapshotBuilder builder = ScaledDown();
  builder.pod_template()["spec"]["priorityClassName"] = "mine";
  builder.pod_template()["spec"]["restartPolicy"] = "Always";
  builder.DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
  builder.warmup().spec.compile.overrides = {.command = {"warm"}};
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.jobs_to_create.size(), 1U);
  const codec::Json pod = (*plan.jobs_to_create[0].object)["spec"]["template"]["spec"];
  EXPECT_EQ(pod["containers"][0]["command"][0], "warm");
  EXPECT_EQ(pod["priorityClassName"], "cachewarm-builder");
  EXPECT_EQ(pod["restartPolicy"], "Never");
  EXPECT_EQ(pod["volumes"][0]["name"], "cachewarm");
}

TEST(BuilderJobs, RejectedJobFailsBuildWithServerMessage) {
  SnapshotBuilder builder = ScaledDown();
  builder.warmup().spec.compile.backoff_limit = 0;
  const Plan first = builder.Decide();
  ASSERT_EQ(first.jobs_to_create.size(), 1U);
  builder.status() = first.status;
  const std::string& job = first.jobs_to_create[0].name;
  builder.in().jobs.push_back({.name = job, .refused = true, .message = "tty: no boolean"});
  builder.Now(101);
  const Plan plan = builder.Decide();
  const api::BuilderStatus& failed = plan.status.builders.at(0);
  EXPECT_EQ(failed.state, api::BuilderState::kFailed);
  EXPECT_EQ(failed.reason, "BuilderJobRejected");
  EXPECT_NE(failed.message.find("tty: no boolean"), std::string::npos) << failed.message;
  EXPECT_NE(fakes::Condition(plan, "Degraded")->message.find("tty: no boolean"), std::string::npos);
  EXPECT_TRUE(plan.jobs_to_delete.empty()) << "the Job does not exist";
}

TEST(BuilderJobs, ChangedOverridesOrRequestsAreTriedAtOnce) {
  SnapshotBuilder builder = ScaledDown();
  builder.warmup().spec.compile.backoff_limit = 0;
  builder.warmup().spec.compile.overrides = {.args = {"--warm"}};
  builder.status() = builder.Decide().status;
  builder.status().builders.at(0).state = api::BuilderState::kFailed;
  builder.status().builders.at(0).finished_time = At(101);
  builder.Now(102);
  EXPECT_TRUE(builder.Decide().jobs_to_create.empty()) << "nothing has changed";
  builder.warmup().spec.compile.overrides->args = {"--all"};
  EXPECT_EQ(builder.Decide().jobs_to_create.size(), 1U);
  builder.warmup().spec.compile.overrides->args = {"--warm"};
  builder.warmup().spec.compile.requests = {{.path = "/", .port = 1}};
  EXPECT_EQ(builder.Decide().jobs_to_create.size(), 1U);
}

}  // namespace
}  // namespace cachewarm::plan
