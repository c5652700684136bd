// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::Condition;
using fakes::PodSetup;
using fakes::ReasonOf;
using fakes::SnapshotBuilder;

SnapshotBuilder Injecting() {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"}).Node({.name = "n2"});
  builder.Accepted();
  return builder;
}

std::string UidOf(SnapshotBuilder& builder, const std::string& pod) {
  for (const auto& each : builder.in().pods) {
    if (each->meta.name == pod) {
      return each->meta.uid;
    }
  }
  return "";
}

TEST(InjectionFailure, VolumeRejectedByKubeletSuspendsInjection) {
  SnapshotBuilder builder = Injecting();
  builder.Pod({.name = "bad", .node = "n1", .created = 90});
  builder.in().mount_failures = {{UidOf(builder, "bad"),
                                  "MountVolume.SetUp failed for volume \"cachewarm\" : hostPath "
                                  "type check failed: x is not a directory"}};
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "VolumeRejected");
  EXPECT_FALSE(plan.status.injection.has_value());
  EXPECT_EQ(plan.set_inject_label, false);
  EXPECT_NE(Condition(plan, "Ready")->message.find("node n1"), std::string::npos);
  EXPECT_NE(Condition(plan, "Ready")->message.find("type check failed"), std::string::npos);
}

TEST(InjectionFailure, MountFailureInRuntimeSuspendsInjection) {
  SnapshotBuilder builder = Injecting();
  builder.Pod(
      {.name = "bad",
       .node = "n1",
       .created = 90,
       .words = "CreateContainerError: failed to stat \"/var/lib/cachewarm/models/llama\""});
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "VolumeRejected");
}

TEST(InjectionFailure, UnrelatedRuntimeErrorIsIgnored) {
  SnapshotBuilder builder = Injecting();
  builder.Pod({.name = "bad",
               .node = "n1",
               .created = 90,
               .words = "ImagePullBackOff: Back-off pulling image \"server:1\""});
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "Injecting");
}

TEST(InjectionFailure, SuspensionOutlivesFailedPod) {
  SnapshotBuilder builder = Injecting();
  builder.Pod({.name = "bad", .node = "n1", .created = 90});
  builder.in().mount_failures = {{UidOf(builder, "bad"), "volume \"cachewarm\""}};
  builder.status() = builder.Decide().status;
  builder.warmup().labels.clear();
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "VolumeRejected");
  builder.Pod({.name = "bad", .node = "n1", .created = 90, .deleting = true});
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "VolumeRejected");
}

TEST(InjectionFailure, SuspensionReleasesHeldPods) {
  SnapshotBuilder builder = Injecting();
  builder.Pod({.name = "bad", .node = "n1", .created = 90, .restarts = 2, .words = "exit 1"});
  builder.Pod({.name = "held", .held = true, .created = 95});
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "PodsCrashing");
  ASSERT_NE(fakes::ReleaseOf(plan, "held"), nullptr);
  EXPECT_EQ(fakes::ReleaseOf(plan, "held")->reason, "ReleasedHoldingDisabled");
}

struct CrashCase {
  const char* name;
  std::vector<PodSetup> pods;
  const char* reason;
};

class Crashes : public testing::TestWithParam<CrashCase> {};

TEST_P(Crashes, CrashesSuspendOnlyWithoutOtherCause) {
  SnapshotBuilder builder = Injecting();
  for (const PodSetup& pod : GetParam().pods) {
    builder.Pod(pod);
  }
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), GetParam().reason);
}

const PodSetup kCrashing = {
    .name = "bad", .node = "n1", .created = 50, .restarts = 2, .words = "Error: exit 1"};

PodSetup With(PodSetup pod, void (*change)(PodSetup&)) {
  change(pod);
  return pod;
}

INSTANTIATE_TEST_SUITE_P(
    All, Crashes,
    testing::Values(CrashCase{"first_crash_gets_a_fresh_tree",
                              {With(kCrashing, [](PodSetup& pod) { pod.restarts = 0; })},
                              "Injecting"},
                    CrashCase{"second", {kCrashing}, "PodsCrashing"},
                    CrashCase{"second_just_now",
                              {With(kCrashing, [](PodSetup& pod) { pod.restarts = 1; })},
                              "PodsCrashing"},
                    CrashCase{"one_each_of_two_pods",
                              {With(kCrashing, [](PodSetup& pod) { pod.restarts = 0; }),
                               With(kCrashing,
                                    [](PodSetup& pod) {
                                      pod.name = "bad2";
                                      pod.restarts = 0;
                                    })},
                              "Injecting"},
                    CrashCase{"after_ready",
                              {With(kCrashing,
                                    [](PodSetup& pod) {
                                      pod.ready = 60;
                                      pod.started = 55;
                                    })},
                              "Injecting"},
                    CrashCase{
                        "another_was_ready_with_it",
                        {kCrashing,
                         {.name = "well", .node = "n2", .created = 50, .started = 51, .ready = 60}},
                        "Injecting"},
                    CrashCase{"the_ready_one_is_of_another_revision",
                              {kCrashing,
                               {.name = "old",
                                .node = "n2",
                                .revision = "r0",
                                .created = 10,
                                .started = 11,
                                .ready = 20}},
                              "PodsCrashing"},
                    CrashCase{"also_without_us",
                              {kCrashing, With(kCrashing,
                                               [](PodSetup& pod) {
                                                 pod.name = "plain";
                                                 pod.injected = false;
                                               })},
                              "Injecting"},
                    CrashCase{"well_without_us",
                              {kCrashing,
                               {.name = "plain",
                                .node = "n2",
                                .injected = false,
                                .created = 50,
                                .started = 51,
                                .ready = 60}},
                              "PodsCrashing"},
                    CrashCase{"only_without_us",
                              {With(kCrashing, [](PodSetup& pod) { pod.injected = false; })},
                              "Injecting"},
                    CrashCase{"on_its_way_out",
                              {With(kCrashing, [](PodSetup& pod) { pod.deleting = true; })},
                              "Injecting"}),
    [](const auto& each) { return each.param.name; });

// kubelet reports them as Ready whenever their container runs.
TEST(InjectionFailure, ReadyWithoutProbeDoesNotExcuseCrashes) {
  SnapshotBuilder builder = Injecting();
  builder.pod_template()["spec"]["containers"][0].erase("readinessProbe");
  const PodSetup again =
      With(kCrashing, [](PodSetup& pod) { pod.started = 95, pod.ready = 95, pod.probe = false; });
  builder.Pod(again);
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "PodsCrashing");
  builder.status() = plan.status;
  builder.Now(95 + 59);
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "PodsCrashing") << "and it is not retried";
  builder.Now(95 + 61);
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "Injecting") << "it runs well";
}

// ---- run-once pods ------------------------------------------------------------------------------

struct EndCase {
  const char* name;
  WorkloadKind kind;
  const char* restart_policy;
  const char* reason;  // after the second pod
};

class RunOncePods : public testing::TestWithParam<EndCase> {};

PodSetup Failed(const EndCase& of, const char* name, int created) {
  return {.name = name,
          .node = "n1",
          .created = created,
          .exit_code = 1,
          .words = "exit 1",
          .restart_policy = of.restart_policy};
}

TEST_P(RunOncePods, SecondFailedPodCountsAsSecondCrash) {
  SnapshotBuilder builder = Injecting();
  builder.in().workload.kind = GetParam().kind;
  builder.Pod(Failed(GetParam(), "first", 50));
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "Injecting");
  builder.Pod(Failed(GetParam(), "second", 60));
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), GetParam().reason);
  EXPECT_EQ(plan.status.injection.has_value(), std::string_view("Injecting") == GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    All, RunOncePods,
    testing::Values(
        EndCase{"job", WorkloadKind::kJob, "Never", "PodsCrashing"},
        EndCase{"job_that_restarts_in_place", WorkloadKind::kJob, "OnFailure", "PodsCrashing"},
        EndCase{"cron_job", WorkloadKind::kCronJob, "Never", "PodsCrashing"},
        EndCase{"group_as_a_job_set", WorkloadKind::kGroup, "Never", "PodsCrashing"},
        EndCase{"group_that_restarts", WorkloadKind::kGroup, "Always", "Injecting"},
        EndCase{"selector", WorkloadKind::kSelector, "Never", "PodsCrashing"},
        EndCase{"selector_of_pods_that_restart", WorkloadKind::kSelector, "Always", "Injecting"},
        EndCase{"deployment", WorkloadKind::kDeployment, "Always", "Injecting"}),
    [](const auto& each) { return each.param.name; });

TEST(InjectionFailure, SuspensionIsReportedAfterSelectorPodsAreGone) {
  const EndCase selector{"", WorkloadKind::kSelector, "Never", ""};
  SnapshotBuilder builder = Injecting();
  builder.in().workload.kind = selector.kind;
  builder.Pod(Failed(selector, "first", 50)).Pod(Failed(selector, "second", 60));
  builder.status() = builder.Decide().status;
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "PodsCrashing");
  EXPECT_NE(Condition(plan, "Ready")->message.find("2 pods, including first"), std::string::npos);
}

}  // namespace
}  // namespace cachewarm::plan
