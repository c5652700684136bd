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
ReadinessState After(const std::function<void(SnapshotBuilder&)>& arrange,
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
  EXPECT_EQ(After([](SnapshotBuilder&) {}), ReadinessState::kWarm);
}

TEST(NodeReadiness, WarmupWithoutBundleNeedsOnlyDirectory) {
  EXPECT_EQ(After([](SnapshotBuilder& builder) { builder.status().bundles.clear(); }),
            ReadinessState::kWarm);
}

TEST(NodeReadiness, UnpreparedDirectoryIsWarming) {
  const ReadinessState readiness =
      After([](SnapshotBuilder& builder) { builder.reported("n1").prepared.clear(); });
  EXPECT_EQ(readiness, ReadinessState::kWarming);
}

// The node gets no entry while 256 others stay, so no pod should wait for it.
TEST(NodeReadiness, FullNodeIsFailed) {
  const ReadinessState readiness = After([](SnapshotBuilder& builder) {
    builder.reported("n1").prepared.clear();
    builder.cache("n1").spec = {};
    builder.view("n1").warmups_listed = 256;
  });
  EXPECT_EQ(readiness, ReadinessState::kFailed);
}

// The driver may be installed after the agent has started; the startup taint stays meanwhile.
TEST(NodeReadiness, HiddenGpuIsWarming) {
  const ReadinessState readiness =
      After([](SnapshotBuilder& builder) { builder.cache("n1").status.node.gpu_type = "cpu"; },
            {.name = "n1", .gpus = 8});
  EXPECT_EQ(readiness, ReadinessState::kWarming);
}

TEST(NodeReadiness, PendingBundleIsWarming) {
  const api::BundleState states[] = {api::BundleState::kWaiting, api::BundleState::kFetching};
  for (const api::BundleState state : states) {
    EXPECT_EQ(
        After([&](SnapshotBuilder& builder) { builder.reported("n1").bundles[0].state = state; }),
        ReadinessState::kWarming);
  }
  const ReadinessState readiness =
      After([](SnapshotBuilder& builder) { builder.reported("n1").bundles.clear(); });
  EXPECT_EQ(readiness, ReadinessState::kWarming) << "also before the NodeCache lists it";
}

TEST(NodeReadiness, FailureIsFinalExceptStoreErrors) {
  const auto failed = [](const std::string& reason) {
    return After([&](SnapshotBuilder& builder) {
      builder.reported("n1").bundles[0].state = api::BundleState::kFailed;
      builder.reported("n1").bundles[0].reason = reason;
    });
  };
  EXPECT_EQ(failed("DiskFull"), ReadinessState::kFailed);
  EXPECT_EQ(failed("FetchFailed"), ReadinessState::kWarming) << "the agent retries";
}

TEST(NodeReadiness, IneligibleNodeHasNoState) {
  EXPECT_EQ(After([](SnapshotBuilder& builder) {
              builder.node("n1").taints = {{.key = "team", .effect = "NoSchedule"}};
            }),
            ReadinessState::kNone);
  EXPECT_EQ(After([](SnapshotBuilder& builder) {
              builder.pod_template()["spec"]["nodeSelector"] = {{"pool", "b"}};
            }),
            ReadinessState::kNone);
}

TEST(NodeReadiness, StartupTaintsAndCordonsAreIgnored) {
  const ReadinessState readiness = After([](SnapshotBuilder& builder) {
    builder.node("n1").unschedulable = true;
    builder.node("n1").taints = {
        {.key = "cachewarm.io/warming", .effect = "NoSchedule"},
        {.key = "startup-taint.cluster-autoscaler.kubernetes.io/cachewarm", .effect = "NoExecute"},
        {.key = "readiness.k8s.io/network", .effect = "NoSchedule"},
        {.key = "node.kubernetes.io/not-ready", .effect = "NoExecute"}};
    builder.reported("n1").prepared.clear();
  });
  EXPECT_EQ(readiness, ReadinessState::kWarming);
}

TEST(NodeReadiness, UnregisteredDevicesAreWarming) {
  const fakes::NodeSetup fresh{.name = "n1", .gpu_type = fakes::kH100};
  const auto with_devices = [](int count) {
    return [count](SnapshotBuilder& builder) {
      AskForGpu(builder);
      builder.cache("n1").status.node.devices = count;
    };
  };
  EXPECT_EQ(After(with_devices(8), fresh), ReadinessState::kWarming);
  EXPECT_EQ(After(with_devices(0), fresh), ReadinessState::kNone) << "the agent reported none";
  EXPECT_EQ(After(
                [](SnapshotBuilder& builder) {
                  AskForGpu(builder);
                  builder.view("n1").cache = nullptr;
                },
                fresh),
            ReadinessState::kWarming)
      << "the scheduler has not tried yet";
}

TEST(NodeReadiness, InactiveWarmupHasNoState) {
  EXPECT_EQ(After([](SnapshotBuilder& builder) { builder.warmup().deleting = true; }),
            ReadinessState::kNone);
  EXPECT_EQ(After([](SnapshotBuilder& builder) { builder.warmup().spec.paused = true; }),
            ReadinessState::kNone);
  EXPECT_EQ(After([](SnapshotBuilder& builder) {
              builder.reported("n1").prepared.clear();
              builder.status().conditions = {
                  {.type = "Ready", .status = "False", .reason = "WorkloadNotFound"}};
            }),
            ReadinessState::kNone);
  EXPECT_EQ(After([](SnapshotBuilder& builder) {
              builder.reported("n1").prepared.clear();
              builder.status().conditions = {
                  {.type = "Ready", .status = "False", .reason = "PreparingNodes"}};
            }),
            ReadinessState::kWarming);
}

TEST(NodeReadiness, DirectorySufficesForOtherGpuTypes) {
  EXPECT_EQ(After([](SnapshotBuilder& builder) {
              builder.warmup().spec.gpu_types = {fakes::kH100};
              builder.reported("n1").bundles.clear();
            }),
            ReadinessState::kWarm);
}

}  // namespace
}  // namespace cachewarm::plan
