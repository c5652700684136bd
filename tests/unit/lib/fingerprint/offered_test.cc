// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/offered.h"

#include <gmock/gmock.h>

namespace cachewarm::fingerprint {
namespace {

using ::testing::HasSubstr;

TEST(VendorOf, KnowsTheResourcesOfGpus) {
  const std::pair<const char*, const char*> cases[] = {
      {"nvidia.com/gpu", "nvidia"},
      {"nvidia.com/gpu.shared", "nvidia"},
      {"nvidia.com/mig-1g.10gb", "nvidia"},
      {"nvidia.com/mig-1g.5gb.shared", "nvidia"},
      {"gpu.nvidia.com", "nvidia"},
      {"compute-domain.nvidia.com", ""},
      {"amd.com/gpu", "amd"},
      {"nvidia.com/gpudirect", ""},
      {"example.com/nvidia.com/gpu", ""},
      {"gpu.intel.com/i915", ""},
      {"cpu", ""},
      {"", ""},
  };
  for (const auto& [resource, vendor] : cases) {
    EXPECT_EQ(VendorOf(resource), vendor) << resource;
  }
}

TEST(IsHidden, OnlyDevicesOfThatVendorShowAResource) {
  EXPECT_TRUE(IsHidden("nvidia.com/gpu", "cpu"));
  EXPECT_TRUE(IsHidden("nvidia.com/gpu", ""));
  EXPECT_TRUE(IsHidden("nvidia.com/gpu", "amd/mi300x/gfx942"));
  EXPECT_TRUE(IsHidden("amd.com/gpu", "nvidia/l4/sm_89"));
  EXPECT_TRUE(IsHidden("nvidia.com/gpu", "nvidia2/l4/sm_89"));
  EXPECT_FALSE(IsHidden("nvidia.com/gpu", "nvidia/l4/sm_89"));
  EXPECT_FALSE(IsHidden("nvidia.com/mig-1g.10gb", "nvidia/h100/sm_90/mig-1g.10gb"));
  EXPECT_FALSE(IsHidden("memory", "cpu"));
}

struct LabelCase {
  const char* product;
  const char* memory;
  const char* type;
  uint64_t mebibytes;
  const char* difference;  // a part of the result; "" if the labels agree
};

TEST(LabelDifference, ComparesProductProfileAndMemory) {
  const LabelCase cases[] = {
      {"NVIDIA-H100-80GB-HBM3", "81559", "nvidia/h100-80gb-hbm3/sm_90", 81'559, ""},
      {"NVIDIA-H100-80GB-HBM3-SHARED", "81559", "nvidia/h100-80gb-hbm3/sm_90", 81'559, ""},
      {"Tesla-T4", "15360", "nvidia/tesla-t4/sm_75", 15'109, ""},
      {"NVIDIA-H100-PCIe", "81559", "nvidia/h100-80gb-hbm3/sm_90", 81'559,
       "nvidia.com/gpu.product is NVIDIA-H100-PCIe, but the driver reports "
       "nvidia/h100-80gb-hbm3/sm_90"},
      {"NVIDIA-H100-80GB-HBM3", "97871", "nvidia/h100-80gb-hbm3/sm_90", 81'559,
       "nvidia.com/gpu.memory is 97871 MiB, but the driver reports 81559 MiB"},
      // MIG strategy single names the profile, strategy mixed the whole GPU.
      {"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "4864", "nvidia/a100-sxm4-40gb/sm_80/mig-1g.5gb", 4864,
       ""},
      {"NVIDIA-A100-SXM4-40GB", "40960", "nvidia/a100-sxm4-40gb/sm_80/mig-1g.5gb", 4864, ""},
      {"NVIDIA-A100-SXM4-40GB-MIG-3g.20gb", "19968", "nvidia/a100-sxm4-40gb/sm_80/mig-1g.5gb", 4864,
       "MIG-3g.20gb, but"},
      // Nothing to compare.
      {"NVIDIA-H200", "many", "nvidia/h200/sm_90", 143'771, ""},
      {"NVIDIA-H200", "99999999999999999999999", "nvidia/h200/sm_90", 143'771, ""},
      {"NVIDIA-H200", "", "nvidia/h200/sm_90", 143'771, ""},
      {"NVIDIA-H200", "1", "nvidia/h200/sm_90", 0, ""},
      {"", "1", "nvidia/h200/sm_90", 143'771, ""},
      {"NVIDIA-H200", "143771", "cpu", 0, ""},
  };
  for (const LabelCase& each : cases) {
    const api::NodeOffer offer{.labels = {{"nvidia.com/gpu.memory", each.memory},
                                          {"nvidia.com/gpu.product", each.product}}};
    const NodeFacts facts{
        .gpu_type = each.type, .gpu_kinds = {each.type}, .gpu_memory_bytes = each.mebibytes << 20U};
    const std::string difference = LabelDifference(offer, facts);
    EXPECT_THAT(difference, HasSubstr(each.difference)) << each.product;
    EXPECT_EQ(difference.empty(), std::string(each.difference).empty()) << difference;
  }
}

struct SliceCase {
  const char* product;
  const char* capability;
  const char* difference;  // a part of the result; "" if slice and driver agree
};

TEST(SliceDifference, ComparesProductAndComputeCapability) {
  const NodeFacts facts{.gpu_type = "nvidia/h100-80gb-hbm3/sm_90",
                        .gpu_kinds = {"nvidia/h100-80gb-hbm3/sm_90"}};
  const SliceCase cases[] = {
      {"NVIDIA H100 80GB HBM3", "9.0.0", ""},
      {"NVIDIA H100 80GB HBM3", "9.0", ""},
      {"NVIDIA H100 PCIe", "9.0.0",
       "a ResourceSlice of gpu.nvidia.com lists NVIDIA H100 PCIe (compute capability 9.0.0), but "
       "the driver reports nvidia/h100-80gb-hbm3/sm_90"},
      {"NVIDIA H100 80GB HBM3", "8.9.0", "8.9.0"},
      {"NVIDIA H100 80GB HBM3", "9.1.0", "9.1.0"},
      {"NVIDIA H100 PCIe", "", "not stated"},
      // Nothing to compare.
      {"NVIDIA H100 80GB HBM3", "", ""},
      {"NVIDIA H100 80GB HBM3", "nine", ""},
      {"NVIDIA H100 80GB HBM3", "99999999999999999999.0", ""},
      {"NVIDIA H100 80GB HBM3", "9.x", ""},
      {"", "8.9.0", ""},
  };
  for (const SliceCase& each : cases) {
    const api::NodeOffer offer{.published = {{"gpu.nvidia.com", each.product, each.capability, 8}}};
    const std::string difference = SliceDifference(offer, facts);
    EXPECT_THAT(difference, HasSubstr(each.difference)) << each.product << each.capability;
    EXPECT_EQ(difference.empty(), std::string(each.difference).empty()) << difference;
  }
}

TEST(SliceDifference, EachPublishedKindMustExist) {
  const NodeFacts mixed{.gpu_type = "nvidia/a10+l4/sm_86+sm_89",
                        .gpu_kinds = {"nvidia/a10/sm_86", "nvidia/l4/sm_89"}};
  const api::PublishedDevices l4{"gpu.nvidia.com", "NVIDIA L4", "8.9.0", 1};
  const api::PublishedDevices t4{"gpu.nvidia.com", "Tesla T4", "7.5.0", 1};
  EXPECT_EQ(SliceDifference({.published = {l4}}, mixed), "") << "the A10 need not be published";
  EXPECT_THAT(SliceDifference({.published = {l4, t4}}, mixed), HasSubstr("Tesla T4"));
  api::PublishedDevices other = t4;
  other.driver = "gpu.example.com";
  EXPECT_EQ(SliceDifference({.published = {other}}, mixed), "");
}

TEST(SliceDifference, ProfilesAreNotCompared) {
  const NodeFacts mig{.gpu_type = "nvidia/a100-sxm4-40gb/sm_80/mig-1g.5gb",
                      .gpu_kinds = {"nvidia/a100-sxm4-40gb/sm_80/mig-1g.5gb"}};
  EXPECT_EQ(SliceDifference(
                {.published = {{"gpu.nvidia.com", "NVIDIA A100-SXM4-40GB", "8.0.0", 7}}}, mig),
            "");
}

TEST(SliceDifference, NodeWithoutAnNvidiaDriverIsNotCompared) {
  EXPECT_EQ(SliceDifference({.published = {{"gpu.nvidia.com", "NVIDIA L4", "8.9.0", 1}}}, {}), "");
}

TEST(LabelDifference, MixedNodeIsNotCompared) {
  const api::NodeOffer offer{.labels = {{"nvidia.com/gpu.product", "NVIDIA-L4"}}};
  const NodeFacts facts{.gpu_type = "nvidia/a10+l4/sm_86+sm_89",
                        .gpu_kinds = {"nvidia/a10/sm_86", "nvidia/l4/sm_89"}};
  EXPECT_EQ(LabelDifference(offer, facts), "");
}

}  // namespace
}  // namespace cachewarm::fingerprint
