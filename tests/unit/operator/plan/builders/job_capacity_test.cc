// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lib/codec/json_value.h"
#include "tests/fakes/snapshot_builder.h"
#include "tests/unit/operator/plan/builders/jobs_fixture.h"

// Resources that a builder Job leaves to the pods of the workload: devices, quota, volumes.
namespace cachewarm::plan {
namespace {

using fakes::SnapshotBuilder;

// ---- devices and quota --------------------------------------------------------------------------

// A Deployment whose pods request one device each, on one node with this many free devices.
class Devices : public testing::Test {
 protected:
  void Free(int devices) {
    builder_.pod_template()["spec"]["containers"][0]["resources"] = {
        {"limits", {{"nvidia.com/gpu", 1}}}};
    builder_.Node({.name = "n1", .gpu_type = fakes::kH100, .gpus = devices});
    builder_.warmup().spec.compile.builder = api::Builder::kJob;
    builder_.Accepted();
  }

  size_t JobsMade() { return builder_.Decide().jobs_to_create.size(); }

  // Adds a Job's pod that compiles on n1.
  void Compile() {
    const std::string job = Apply(builder_, builder_.Decide());
    ASSERT_NE(job, "");
    builder_.Pod(
        {.name = "b", .node = "n1", .gpus = 1, .created = 101, .started = 103, .job = job});
    builder_.view("n1").free["nvidia.com/gpu"] = 0;
  }

  SnapshotBuilder builder_;
};

TEST_F(Devices, JobTakesADeviceThatNoPodWaitsFor) {
  Free(2);
  builder_.Pod({.name = "a", .gpus = 1, .created = 100});
  EXPECT_EQ(JobsMade(), 1U);
}

TEST_F(Devices, LastDeviceIsReservedForUnboundPod) {
  for (const bool held : {false, true}) {
    builder_ = SnapshotBuilder();
    Free(1);
    builder_.Pod({.name = "a", .held = held, .gpus = 1, .created = 100});
    EXPECT_EQ(JobsMade(), 0U) << held;
  }
}

TEST_F(Devices, LastDeviceIsReservedForMissingReplica) {
  Free(1);
  builder_.in().constraints.pods_most = 1;
  EXPECT_EQ(JobsMade(), 0U);
  builder_.Pod({.name = "old", .node = "n1", .gpus = 1, .created = 1, .deleting = true});
  EXPECT_EQ(JobsMade(), 0U) << "the deleted pod will have a successor";
  builder_.Pod({.name = "a", .node = "n1", .gpus = 1, .created = 2});
  EXPECT_EQ(JobsMade(), 1U);
}

TEST_F(Devices, PodThatFitsAnotherTypeBlocksNoJob) {
  Free(1);
  builder_.Node({.name = "n2", .cpu_class = fakes::kAvx2, .gpus = 1});
  builder_.Pod({.name = "a", .gpus = 1, .created = 100});
  EXPECT_EQ(JobsMade(), 1U);
}

TEST_F(Devices, JobEndsForUnschedulablePod) {
  Free(1);
  Compile();
  builder_.Pod({.name = "a", .gpus = 1, .created = 110});
  builder_.Now(111);
  EXPECT_TRUE(builder_.Decide().jobs_to_delete.empty()) << "the scheduler has not looked yet";
  builder_.Now(113);
  const Plan plan = builder_.Decide();
  EXPECT_EQ(plan.jobs_to_delete.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].reason, "BuilderLost");
  EXPECT_NE(plan.status.builders[0].message.find("pod a"), std::string::npos);
}

TEST_F(Devices, JobContinuesForPodThatItsDeviceDoesNotHelp) {
  Free(1);
  Compile();
  builder_.Pod({.name = "a", .held = true, .gpus = 1, .created = 110});
  builder_.Pod({.name = "gated", .created = 110, .other_gates = {"example.com/wait"}});
  builder_.view("n1").free["nvidia.com/gpu"] = 1;
  builder_.Pod({.name = "c", .gpus = 1, .created = 110});
  builder_.Now(113);
  EXPECT_TRUE(builder_.Decide().jobs_to_delete.empty());
}

TEST_F(Devices, JobEndsWhenQuotaIsExceeded) {
  Free(2);
  Compile();
  builder_.in().constraints.quota_exceeded = true;
  builder_.Now(113);
  const Plan plan = builder_.Decide();
  EXPECT_EQ(plan.jobs_to_delete.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].reason, "BuilderLost");
  builder_.status() = plan.status;
  builder_.in().jobs.clear();
  builder_.Now(600);
  EXPECT_EQ(JobsMade(), 0U) << "the next Job would block it too";
  builder_.in().constraints.quota_exceeded = false;
  builder_.view("n1").free["nvidia.com/gpu"] = 1;
  EXPECT_EQ(JobsMade(), 1U);
}

TEST_F(Devices, NoPodIsHeldForJobWithoutPod) {
  Free(3);
  builder_.warmup().spec.gate.mode = api::GateMode::kHold;
  builder_.warmup().spec.gate.max_hold_seconds = 300;
  const std::string job = Apply(builder_, builder_.Decide());
  builder_.Pod({.name = "a", .held = true, .gpus = 1, .created = 100});
  builder_.Now(104);
  const Plan early = builder_.Decide();
  EXPECT_EQ(fakes::ReleaseOf(early, "a"), nullptr);
  EXPECT_LE(*early.requeue_after, std::chrono::seconds(1)) << "no object changes then";
  builder_.Now(106);
  ASSERT_NE(fakes::ReleaseOf(builder_.Decide(), "a"), nullptr);
  builder_.Pod({.name = "b", .node = "n1", .gpus = 1, .created = 105, .job = job});
  EXPECT_EQ(fakes::ReleaseOf(builder_.Decide(), "a"), nullptr) << "its image is pulled";
}

TEST_F(Devices, PodIsHeldForElectedPodThatIsNotBoundYet) {
  Free(3);
  builder_.warmup().spec.compile.builder = api::Builder::kFirstPod;
  builder_.warmup().spec.gate.mode = api::GateMode::kHold;
  builder_.warmup().spec.gate.max_hold_seconds = 300;
  builder_.Pod({.name = "a", .held = true, .gpus = 1, .created = 98});
  builder_.Pod({.name = "b", .held = true, .gpus = 1, .created = 99});
  builder_.status() = builder_.Decide().status;
  builder_.Pod({.name = "a", .gpus = 1, .created = 98});
  builder_.Now(110);
  const Plan plan = builder_.Decide();
  ASSERT_EQ(plan.status.builders.at(0).pod_name, "a");
  EXPECT_EQ(fakes::ReleaseOf(plan, "b"), nullptr);
}

// ---- PersistentVolumeClaims ---------------------------------------------------------------------

// A Job compiles on n1 since 103 and mounts a PersistentVolumeClaim that pods of the workload mount
// too.
class SharedClaims : public testing::Test {
 protected:
  SharedClaims() {
    for (const char* node : {"n1", "n2"}) {
      builder_.Node({.name = node});
    }
    builder_.pod_template()["spec"]["volumes"] = {
        {{"name", "w"}, {"persistentVolumeClaim", {{"claimName", "w"}, {"readOnly", true}}}}};
    builder_.warmup().spec.compile.builder = api::Builder::kJob;
    builder_.Accepted();
    const std::string job = Apply(builder_, builder_.Decide());
    builder_.Pod({.name = "b", .node = "n1", .created = 101, .started = 103, .job = job});
    builder_.Now(104);
    Apply(builder_, builder_.Decide());
  }

  // Returns the build after `seconds` beside `pod`.
  api::BuilderStatus After(int seconds, const fakes::PodSetup& pod) {
    builder_.Pod(pod);
    builder_.Now(104 + seconds);
    return builder_.Decide().status.builders.at(0);
  }

  static bool Goes(const api::BuilderStatus& build) {
    return build.state == api::BuilderState::kElected ||
           build.state == api::BuilderState::kCapturing;
  }

  SnapshotBuilder builder_;
};

TEST_F(SharedClaims, JobEndsForPodWaitingForItsVolume) {
  for (const char* node : {"n2", ""}) {
    const fakes::PodSetup pod = {.name = "p", .node = node, .created = 104};
    EXPECT_TRUE(Goes(After(14, pod))) << node;
    const api::BuilderStatus ended = After(15, pod);
    EXPECT_EQ(ended.reason, "BuilderLost") << node;
    EXPECT_NE(ended.message.find("PersistentVolumeClaim"), std::string::npos) << ended.message;
  }
}

TEST_F(SharedClaims, JobContinuesBesidePodThatHasTheVolume) {
  EXPECT_TRUE(Goes(After(60, {.name = "p", .node = "n2", .created = 104, .started = 106})));
  EXPECT_TRUE(Goes(After(60, {.name = "p", .node = "n1", .created = 104}))) << "the same node";
  EXPECT_TRUE(Goes(After(60, {.name = "p", .held = true, .created = 104})));
  const fakes::PodSetup released = {.name = "p",
                                    .node = "n2",
                                    .created = 104,
                                    .annotations = {{"cachewarm.io/held-seconds", "50.0"}}};
  EXPECT_TRUE(Goes(After(60, released))) << "it was released 10 s ago";
}

TEST_F(SharedClaims, JobContinuesWithoutSharedClaim) {
  builder_.pod_template()["spec"].erase("volumes");
  EXPECT_TRUE(Goes(After(60, {.name = "p", .node = "n2", .created = 104})));
}

}  // namespace
}  // namespace cachewarm::plan
