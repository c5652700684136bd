// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/nodes/readiness.h"

#include <gtest/gtest.h>

#include <functional>

#include "lib/api/condition.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::SnapshotBuilder;

// Returns the readiness of the builder's warmup on its only node "n1" after `arrange`.
NodeReadiness After(const std::function<void(SnapshotBuilder&)>& arrange,
                    const fakes::NodeSetup& node = {.name = "n1"}) {
  SnapshotBuilder builder;
  builder.Node(node);
  builder.Accepted();
  builder.Bundle({.node = "n1", .active = {"n1"}});
  arrange(builder);
  return EvaluateReadiness(builder.in());
}

void AskForGpu(SnapshotBuilder& builder) {
  builder.pod_template()["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1";
}

TEST(NodeReadiness, DirectoryAndBundleMakeNodeWarm) {
  EXPECT_EQ(After([](SnapshotBuilder&) {}).state, ReadinessState::kWarm);
}

TEST(NodeReadiness, WarmupWithoutBundleNeedsOnlyDirectory) {
  EXPECT_EQ(After([](SnapshotBuilder& builder) { builder.status().bundles.clear(); }).state,
            ReadinessState::kWarm);
}

TEST(NodeReadiness, UnpreparedDirectoryIsWarming) {
  const NodeReadiness readiness =
      After([](SnapshotBuilder& builder) { builder.reported("n1").prepared.clear(); });
  EXPECT_EQ(readiness.state, ReadinessState::kWarming);
  EXPECT_EQ(readiness.message, "the directory of CacheWarmup models/llama is not prepared yet");
}

// The node gets no entry while 64 others stay, so no pod should wait for it.
TEST(NodeReadiness, FullNodeIsFailed) {
  const NodeReadiness readiness = After([](SnapshotBuilder& builder) {
    builder.reported("n1").prepared.clear();
    builder.cache("n1").spec = {};
    builder.view("n1").warmups_listed = 64;
  });
  EXPECT_EQ(readiness.state, ReadinessState::kFailed);
  EXPECT_NE(readiness.message.find("64 other CacheWarmups"), std::string::npos)
      << readiness.message;
}

// The driver may be installed after the agent has started; the startup taint stays meanwhile.
TEST(NodeReadiness, HiddenGpuIsWarming) {
  const NodeReadiness readiness =
      After([](SnapshotBuilder& builder) { builder.cache("n1").status.node.gpu_type = "cpu"; },
            {.name = "n1", .gpus = 8});
  EXPECT_EQ(readiness.state, ReadinessState::kWarming);
  EXPECT_EQ(readiness.message, "the agent does not see the node's nvidia.com/gpu yet");
}

TEST(NodeReadiness, PendingBundleIsWarming) {
  const api::BundleState states[] = {api::BundleState::kWaiting, api::BundleState::kFetching};
  for (const api::BundleState state : states) {
    EXPECT_EQ(After([&](SnapshotBuilder& builder) {
                builder.reported("n1").bundles[0].state = state;
              }).state,
              ReadinessState::kWarming);
  }
  const NodeReadiness readiness =
      After([](SnapshotBuilder& builder) { builder.reported("n1").bundles.clear(); });
  EXPECT_EQ(readiness.state, ReadinessState::kWarming) << "also before the NodeCache lists it";
  EXPECT_EQ(readiness.message, "bundle aaaaaaaaaaaa of CacheWarmup models/llama is not active yet");
}

TEST(NodeReadiness, FailureIsFinalExceptStoreErrors) {
  const auto failed = [](const std::string& reason) {
    return After([&](SnapshotBuilder& builder) {
      builder.reported("n1").bundles[0].state = api::BundleState::kFailed;
      builder.reported("n1").bundles[0].reason = reason;
    });
  };
  EXPECT_EQ(failed("DiskFull").state, ReadinessState::kFailed);
  EXPECT_EQ(failed("DiskFull").message,
            "bundle aaaaaaaaaaaa of CacheWarmup models/llama failed: DiskFull");
  EXPECT_EQ(failed("FetchFailed").state, ReadinessState::kWarming) << "the agent retries";
}

TEST(NodeReadiness, IneligibleNodeHasNoState) {
  EXPECT_EQ(After([](SnapshotBuilder& builder) {
              builder.node("n1").taints = {{.key = "team", .effect = "NoSchedule"}};
            }).state,
            ReadinessState::kNone);
  EXPECT_EQ(After([](SnapshotBuilder& builder) {
              builder.pod_template()["spec"]["nodeSelector"] = {{"pool", "b"}};
            }).state,
            ReadinessState::kNone);
}

TEST(NodeReadiness, StartupTaintsAndCordonsAreIgnored) {
  const NodeReadiness readiness = After([](SnapshotBuilder& builder) {
    builder.node("n1").unschedulable = true;
    builder.node("n1").taints = {
        {.key = "cachewarm.io/warming", .effect = "NoSchedule"},
        {.key = "startup-taint.cluster-autoscaler.kubernetes.io/cachewarm", .effect = "NoExecute"},
        {.key = "readiness.k8s.io/cachewarm", .effect = "NoSchedule"},
        {.key = "node.kubernetes.io/not-ready", .effect = "NoExecute"}};
    builder.reported("n1").prepared.clear();
  });
  EXPECT_EQ(readiness.state, ReadinessState::kWarming);
}

TEST(NodeReadiness, UnregisteredDevicesAreWarming) {
  const fakes::NodeSetup fresh{.name = "n1", .gpu_type = fakes::kH100};
  const auto with_devices = [](int count) {
    return [count](SnapshotBuilder& builder) {
      AskForGpu(builder);
      builder.cache("n1").status.node.devices = count;
    };
  };
  EXPECT_EQ(After(with_devices(8), fresh).state, ReadinessState::kWarming);
  EXPECT_EQ(After(with_devices(0), fresh).state, ReadinessState::kNone)
      << "the agent reported none";
  EXPECT_EQ(After(
                [](SnapshotBuilder& builder) {
                  AskForGpu(builder);
                  builder.view("n1").cache = nullptr;
                },
                fresh)
                .state,
            ReadinessState::kWarming)
      << "the scheduler has not tried yet";
}

TEST(NodeReadiness, InactiveWarmupHasNoState) {
  EXPECT_EQ(After([](SnapshotBuilder& builder) { builder.warmup().deleting = true; }).state,
            ReadinessState::kNone);
  EXPECT_EQ(After([](SnapshotBuilder& builder) { builder.warmup().spec.paused = true; }).state,
            ReadinessState::kNone);
  EXPECT_EQ(After([](SnapshotBuilder& builder) {
              builder.reported("n1").prepared.clear();
              builder.status().conditions = {
                  {.type = "Ready", .status = "False", .reason = "WorkloadNotFound"}};
            }).state,
            ReadinessState::kNone);
  EXPECT_EQ(After([](SnapshotBuilder& builder) {
              builder.reported("n1").prepared.clear();
              builder.status().conditions = {
                  {.type = "Ready", .status = "False", .reason = "PreparingNodes"}};
            }).state,
            ReadinessState::kWarming);
}

TEST(NodeReadiness, DirectorySufficesForOtherGpuTypes) {
  EXPECT_EQ(After([](SnapshotBuilder& builder) {
              builder.warmup().spec.gpu_types = {fakes::kH100};
              builder.reported("n1").bundles.clear();
            }).state,
            ReadinessState::kWarm);
}

}  // namespace
}  // namespace cachewarm::plan
