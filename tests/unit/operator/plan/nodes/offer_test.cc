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
                                                 {"kubernetes.io/os", "linux"}}),
                                       {});
  EXPECT_EQ(offer.devices,
            (std::vector<api::OfferedDevices>{{"amd.com/gpu", 2}, {"nvidia.com/mig-1g.10gb", 7}}));
  EXPECT_EQ(offer.labels, (std::vector<api::NodeLabel>{{"nvidia.com/gpu.memory", "143771"},
                                                       {"nvidia.com/gpu.product", "NVIDIA-H200"}}));
  EXPECT_EQ(OfferOf(NodeWith({{"cpu", 8000}}), {}), api::NodeOffer{});
}

TEST(OfferOf, StaysWithinTheLimitsOfTheSchema) {
  api::Resources allocatable;
  for (int i = 0; i < 40; ++i) {
    allocatable["nvidia.com/mig-" + std::to_string(i)] = int64_t{1} << 40;
  }
  const api::NodeOffer offer = OfferOf(NodeWith(allocatable), {});
  ASSERT_EQ(offer.devices.size(), api::json::kOfferedDevicesMax);
  EXPECT_EQ(offer.devices[0].count, api::json::kCountMax);
}

api::ResourceSlice SliceWith(const std::string& pool, int64_t generation,
                             std::vector<api::SliceDevice> devices) {
  return {.driver = "gpu.nvidia.com",
          .node = "a",
          .pool = pool,
          .pool_generation = generation,
          .devices = std::move(devices)};
}

TEST(OfferOf, CountsTheDevicesInResourceSlicesByKind) {
  const api::SliceDevice h200{.product = "NVIDIA H200", .compute_capability = "9.0.0"};
  const api::SliceDevice l4{.product = "NVIDIA L4", .compute_capability = "8.9.0"};
  api::ResourceSlice other = SliceWith("a", 3, {l4});
  other.driver = "compute-domain.nvidia.com";
  const api::NodeOffer offer =
      OfferOf(NodeWith({{"cpu", 8000}}), {SliceWith("a", 2, {l4, l4}),  // replaced
                                          SliceWith("a", 3, {h200, l4}), SliceWith("a", 3, {h200}),
                                          SliceWith("b", 1, {l4}), other});
  EXPECT_EQ(offer.published,
            (std::vector<api::PublishedDevices>{{"gpu.nvidia.com", "NVIDIA H200", "9.0.0", 2},
                                                {"gpu.nvidia.com", "NVIDIA L4", "8.9.0", 2}}));
}

TEST(OfferOf, ListsAtMostSixteenKindsOfBoundedText) {
  std::vector<api::SliceDevice> devices;
  for (int i = 10; i < 40; ++i) {
    devices.push_back({.product = std::to_string(i) + std::string(100, 'x'),
                       .compute_capability = std::string(100, '9')});
  }
  const api::NodeOffer offer = OfferOf(NodeWith({}), {SliceWith("a", 1, devices)});
  ASSERT_EQ(offer.published.size(), api::json::kPublishedDevicesMax);
  EXPECT_EQ(offer.published[0].product.size(), api::json::kDeviceAttributeBytes);
  EXPECT_EQ(offer.published[0].compute_capability.size(), api::json::kDeviceAttributeBytes);
}

TEST(HiddenDevice, ReadsResourceSlicesToo) {
  const std::vector<api::PublishedDevices> published = {{.driver = "gpu.nvidia.com", .count = 1}};
  EXPECT_EQ(HiddenDevice(NodeWith({{"cpu", 8}}), published, "cpu"), "gpu.nvidia.com");
  EXPECT_EQ(HiddenDevice(NodeWith({{"cpu", 8}}), published, "nvidia/h200/sm_90"), "");
}

TEST(HiddenDevice, ComparesVendors) {
  const api::Node node = NodeWith({{"nvidia.com/gpu", 8}});
  EXPECT_EQ(HiddenDevice(node, {}, "cpu"), "nvidia.com/gpu");
  EXPECT_EQ(HiddenDevice(node, {}, "amd/mi300x/gfx942"), "nvidia.com/gpu");
  EXPECT_EQ(HiddenDevice(node, {}, "nvidia/h200/sm_90"), "");
  EXPECT_EQ(HiddenDevice(NodeWith({{"nvidia.com/gpu", 0}}), {}, "cpu"), "");
  EXPECT_EQ(HiddenDevice(NodeWith({{"cpu", 8}}), {}, "cpu"), "");
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

TEST_F(HiddenGpuTest, NodeWithGpusOnlyInResourceSlicesGetsNoBundle) {
  builder_.Bundle({.node = "plain", .active = {"plain"}});
  builder_.cache("plain").spec.node.published = {{.driver = "gpu.nvidia.com", .count = 8}};
  const Plan plan = builder_.Decide();
  const api::WantedWarmup* plain = EntryOf(plan, "plain");
  ASSERT_NE(plain, nullptr);
  EXPECT_TRUE(plain->bundles.empty());
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
  EXPECT_EQ(warm->message,
            "no GPU type is known yet: node hidden offers nvidia.com/gpu, but the agent there does "
            "not see the devices; the condition GPUNotVisible of NodeCache hidden has the "
            "remedy");
}

}  // namespace
}  // namespace cachewarm::plan
