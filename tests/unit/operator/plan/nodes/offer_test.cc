// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/nodes/offer.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/api/condition.h"
#include "lib/api/json/limits.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::SnapshotBuilder;

api::Node NodeWith(const api::Resources& allocatable, const api::Labels& labels = {}) {
  api::Node node;
  node.allocatable = allocatable;
  node.meta.labels = labels;
  return node;
}

TEST(OfferOf, ListsGpusAndTheirLabels) {
  const api::NodeOffer offer = OfferOf(NodeWith({{"cpu", 8000},
                                                 {"memory", 1 << 30},
                                                 {"nvidia.com/mig-1g.10gb", 7},
                                                 {"nvidia.com/gpu", 0},
                                                 {"amd.com/gpu", 2},
                                                 {"rdma/hca", 1}},
                                                {{"nvidia.com/gpu.product", "NVIDIA-H200"},
                                                 {"nvidia.com/gpu.memory", "143771"},
                                                 {"nvidia.com/gpu.family", "hopper"},
                                                 {"kubernetes.io/os", "linux"}}));
  EXPECT_EQ(offer.devices,
            (std::vector<api::OfferedDevices>{{"amd.com/gpu", 2}, {"nvidia.com/mig-1g.10gb", 7}}));
  EXPECT_EQ(offer.labels, (std::vector<api::NodeLabel>{{"nvidia.com/gpu.memory", "143771"},
                                                       {"nvidia.com/gpu.product", "NVIDIA-H200"}}));
  EXPECT_EQ(OfferOf(NodeWith({{"cpu", 8000}})), api::NodeOffer{});
}

TEST(OfferOf, StaysWithinTheLimitsOfTheSchema) {
  api::Resources allocatable;
  for (int i = 0; i < 40; ++i) {
    allocatable["nvidia.com/mig-" + std::to_string(i)] = int64_t{1} << 40;
  }
  const api::NodeOffer offer = OfferOf(NodeWith(allocatable));
  ASSERT_EQ(offer.devices.size(), api::json::kOfferedDevicesMax);
  EXPECT_EQ(offer.devices[0].count, api::json::kCountMax);
}

TEST(HiddenDevice, ComparesVendors) {
  const api::Node node = NodeWith({{"nvidia.com/gpu", 8}});
  EXPECT_EQ(HiddenDevice(node, "cpu"), "nvidia.com/gpu");
  EXPECT_EQ(HiddenDevice(node, "amd/mi300x/gfx942"), "nvidia.com/gpu");
  EXPECT_EQ(HiddenDevice(node, "nvidia/h200/sm_90"), "");
  EXPECT_EQ(HiddenDevice(NodeWith({{"nvidia.com/gpu", 0}}), "cpu"), "");
  EXPECT_EQ(HiddenDevice(NodeWith({{"cpu", 8}}), "cpu"), "");
}

// A GPU node whose agent reports the type cpu, beside a node without a GPU.
class HiddenGpuTest : public ::testing::Test {
 protected:
  HiddenGpuTest() {
    builder_.Node({.name = "plain"});
    builder_.Node({.name = "hidden", .gpus = 8});
    builder_.cache("hidden").status.node.gpu_type = "cpu";
    builder_.Accepted();
  }

  const api::WantedWarmup* EntryOf(const Plan& plan, const std::string& node) {
    for (const NodeEntries& entries : plan.nodes) {
      if (entries.node == node && !entries.spec.warmups.empty()) {
        return &entries.spec.warmups.front();
      }
    }
    return nullptr;
  }

  SnapshotBuilder builder_;
};

TEST_F(HiddenGpuTest, NodeGetsItsDirectoryButNoBundle) {
  builder_.Bundle({.node = "plain", .active = {"plain"}});
  const Plan plan = builder_.Decide();
  const api::WantedWarmup* hidden = EntryOf(plan, "hidden");
  ASSERT_NE(hidden, nullptr);
  EXPECT_FALSE(hidden->run_as.empty());
  EXPECT_TRUE(hidden->bundles.empty());
  ASSERT_NE(EntryOf(plan, "plain"), nullptr);
  EXPECT_EQ(EntryOf(plan, "plain")->bundles.size(), 1U);
}

TEST_F(HiddenGpuTest, PodOnTheNodeBecomesNoBuilder) {
  builder_.Pod({.name = "p", .node = "hidden", .started = 1});
  const Plan plan = builder_.Decide();
  EXPECT_TRUE(plan.status.builders.empty());
}

// The driver hangs while the agent restarts: an active tree must not be replaced by an empty one.
TEST_F(HiddenGpuTest, UnknownGpuKeepsTheBundlesOfTheNode) {
  api::NodeStatus& facts = builder_.cache("hidden").status.node;
  facts.gpu_type = "nvidia/h200/sm_90";
  builder_.Bundle({.node = "hidden", .active = {"hidden"}});
  const Plan first = builder_.Decide();
  ASSERT_NE(EntryOf(first, "hidden"), nullptr);
  api::WantedWarmup entry = *EntryOf(first, "hidden");
  entry.fetch_priority = api::kFetchPriorityBound;
  entry.fetch_granted_time = builder_.in().now;
  ASSERT_EQ(entry.bundles.size(), 1U);
  builder_.cache("hidden").spec.warmups = {entry};
  facts.gpu_type = "";
  EXPECT_TRUE(IsGpuUnknown(facts));
  const Plan unknown = builder_.Decide();
  EXPECT_EQ(EntryOf(unknown, "hidden"), nullptr) << "the entry stays as it is";
  // Several kinds of GPU: the agent reports devices and no type.
  facts.devices = 8;
  EXPECT_FALSE(IsGpuUnknown(facts));
  const Plan mixed = builder_.Decide();
  ASSERT_NE(EntryOf(mixed, "hidden"), nullptr);
  EXPECT_TRUE(EntryOf(mixed, "hidden")->bundles.empty());
}

TEST_F(HiddenGpuTest, BundleArrivesWhenTheAgentSeesTheDriver) {
  builder_.cache("hidden").status.node.gpu_type = "nvidia/h200/sm_90";
  builder_.Pod({.name = "p", .node = "hidden", .started = 1});
  const Plan plan = builder_.Decide();
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].gpu_type, "nvidia/h200/sm_90");
}

TEST(HiddenGpu, ConditionWarmNamesNodeAndDevice) {
  SnapshotBuilder builder;
  builder.Node({.name = "hidden", .gpus = 8});
  builder.cache("hidden").status.node.gpu_type = "cpu";
  builder.Accepted();
  const Plan plan = builder.Decide();
  const api::Condition* warm = api::FindCondition(plan.status.conditions, "Warm");
  ASSERT_NE(warm, nullptr);
  EXPECT_EQ(
      warm->message,
      "no GPU type is known yet: kubelet offers nvidia.com/gpu on node hidden, but the agent "
      "there does not see the devices; the condition GPUNotVisible of NodeCache hidden has the "
      "remedy");
}

}  // namespace
}  // namespace cachewarm::plan
