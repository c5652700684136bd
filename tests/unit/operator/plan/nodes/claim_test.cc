// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/nodes/claim.h"

#include <gtest/gtest.h>

#include <functional>

#include "lib/api/condition.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::SnapshotBuilder;

// What the warmup of the builder says about its one node "n1" after `arrange`.
NodeClaim After(const std::function<void(SnapshotBuilder&)>& arrange,
                const fakes::NodeSetup& node = {.name = "n1"}) {
  SnapshotBuilder builder;
  builder.Node(node);
  builder.Accepted();
  builder.Bundle({.node = "n1", .active = {"n1"}});
  arrange(builder);
  return ClaimOf(builder.in());
}

void AskForGpu(SnapshotBuilder& builder) {
  builder.pod_template()["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1";
}

TEST(Claim, ANodeWithDirectoryAndBundleIsWarm) {
  EXPECT_EQ(After([](SnapshotBuilder&) {}).claim, Claim::kWarm);
}

TEST(Claim, AWarmupWithoutABundleNeedsTheDirectoryOnly) {
  EXPECT_EQ(After([](SnapshotBuilder& builder) { builder.status().bundles.clear(); }).claim,
            Claim::kWarm);
}

TEST(Claim, ADirectoryThatIsNotPreparedIsWaitedFor) {
  const NodeClaim claim =
      After([](SnapshotBuilder& builder) { builder.reported("n1").prepared.clear(); });
  EXPECT_EQ(claim.claim, Claim::kWaits);
  EXPECT_EQ(claim.message, "the directory of models/llama is not prepared yet");
}

// Nothing comes there while 64 others stay: no pod is to wait for it.
TEST(Claim, ANodeThatIsFullOfOthersIsNotWaitedFor) {
  const NodeClaim claim = After([](SnapshotBuilder& builder) {
    builder.reported("n1").prepared.clear();
    builder.cache("n1").spec = {};
    builder.view("n1").warmups_listed = 64;
  });
  EXPECT_EQ(claim.claim, Claim::kFailed);
  EXPECT_NE(claim.message.find("64 other CacheWarmups"), std::string::npos) << claim.message;
}

TEST(Claim, ABundleIsWaitedForWhereverItIs) {
  const api::BundleState states[] = {api::BundleState::kWaiting, api::BundleState::kFetching};
  for (const api::BundleState state : states) {
    EXPECT_EQ(After([&](SnapshotBuilder& builder) {
                builder.reported("n1").bundles[0].state = state;
              }).claim,
              Claim::kWaits);
  }
  const NodeClaim claim =
      After([](SnapshotBuilder& builder) { builder.reported("n1").bundles.clear(); });
  EXPECT_EQ(claim.claim, Claim::kWaits) << "also before the node was told of it";
  EXPECT_EQ(claim.message, "bundle aaaaaaaaaaaa of models/llama is not active yet");
}

TEST(Claim, AFailureIsFinalUnlessTheStoreIsToBlame) {
  const auto failed = [](const std::string& reason) {
    return After([&](SnapshotBuilder& builder) {
      builder.reported("n1").bundles[0].state = api::BundleState::kFailed;
      builder.reported("n1").bundles[0].reason = reason;
    });
  };
  EXPECT_EQ(failed("DiskFull").claim, Claim::kFailed);
  EXPECT_EQ(failed("DiskFull").message, "bundle aaaaaaaaaaaa of models/llama: DiskFull");
  EXPECT_EQ(failed("FetchFailed").claim, Claim::kWaits) << "the agent tries again";
}

TEST(Claim, ANodeThatPodsCannotUseIsNoneOfItsBusiness) {
  EXPECT_EQ(After([](SnapshotBuilder& builder) {
              builder.node("n1").taints = {{.key = "team", .effect = "NoSchedule"}};
            }).claim,
            Claim::kNone);
  EXPECT_EQ(After([](SnapshotBuilder& builder) {
              builder.pod_template()["spec"]["nodeSelector"] = {{"pool", "b"}};
            }).claim,
            Claim::kNone);
}

TEST(Claim, StartupTaintsAndCordonsDoNotCount) {
  const NodeClaim claim = After([](SnapshotBuilder& builder) {
    builder.node("n1").unschedulable = true;
    builder.node("n1").taints = {
        {.key = "cachewarm.io/warming", .effect = "NoSchedule"},
        {.key = "startup-taint.cluster-autoscaler.kubernetes.io/cachewarm", .effect = "NoExecute"},
        {.key = "readiness.k8s.io/cachewarm", .effect = "NoSchedule"},
        {.key = "node.kubernetes.io/not-ready", .effect = "NoExecute"}};
    builder.reported("n1").prepared.clear();
  });
  EXPECT_EQ(claim.claim, Claim::kWaits);
}

TEST(Claim, DevicesThatAreNotRegisteredYetAreWaitedForWhereTheyAre) {
  const fakes::NodeSetup fresh{.name = "n1", .gpu_type = fakes::kH100};
  const auto with_devices = [](int count) {
    return [count](SnapshotBuilder& builder) {
      AskForGpu(builder);
      builder.cache("n1").status.node.devices = count;
    };
  };
  EXPECT_EQ(After(with_devices(8), fresh).claim, Claim::kWaits);
  EXPECT_EQ(After(with_devices(0), fresh).claim, Claim::kNone) << "the agent found none";
  EXPECT_EQ(After(
                [](SnapshotBuilder& builder) {
                  AskForGpu(builder);
                  builder.view("n1").cache = nullptr;
                },
                fresh)
                .claim,
            Claim::kWaits)
      << "nobody has looked yet";
}

TEST(Claim, AWarmupThatDoesNothingNewClaimsNothing) {
  EXPECT_EQ(After([](SnapshotBuilder& builder) { builder.warmup().deleting = true; }).claim,
            Claim::kNone);
  EXPECT_EQ(After([](SnapshotBuilder& builder) { builder.warmup().spec.paused = true; }).claim,
            Claim::kNone);
  EXPECT_EQ(After([](SnapshotBuilder& builder) {
              builder.reported("n1").prepared.clear();
              builder.status().conditions = {
                  {.type = "Ready", .status = "False", .reason = "WorkloadNotFound"}};
            }).claim,
            Claim::kNone);
  EXPECT_EQ(After([](SnapshotBuilder& builder) {
              builder.reported("n1").prepared.clear();
              builder.status().conditions = {
                  {.type = "Ready", .status = "False", .reason = "PreparingNodes"}};
            }).claim,
            Claim::kWaits);
}

TEST(Claim, OutsideOfItsGpuTypesTheDirectoryIsEnough) {
  EXPECT_EQ(After([](SnapshotBuilder& builder) {
              builder.warmup().spec.gpu_types = {fakes::kH100};
              builder.reported("n1").bundles.clear();
            }).claim,
            Claim::kWarm);
}

}  // namespace
}  // namespace cachewarm::plan
