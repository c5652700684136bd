// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/gpu_type.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace cachewarm::fingerprint {
namespace {

struct Case {
  GpuDevice device;
  const char* type;
};

TEST(GpuTypeOf, NormalisesNamesOfDriversAndLabels) {
  const Case cases[] = {
      {{"NVIDIA H100 80GB HBM3", 9, 0, ""}, "nvidia/h100-80gb-hbm3/sm_90"},
      {{"NVIDIA H100 80GB HBM3", 9, 0, "1g.10gb"}, "nvidia/h100-80gb-hbm3/sm_90/mig-1g.10gb"},
      {{"NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", 9, 0, ""}, "nvidia/h100-80gb-hbm3/sm_90/mig-1g.10gb"},
      {{"NVIDIA-H100-80GB-HBM3-MIG-1g.10gb+me", 9, 0, ""},
       "nvidia/h100-80gb-hbm3/sm_90/mig-1g.10gb+me"},
      {{"NVIDIA H100 80GB HBM3 MIG 3g.40gb", 9, 0, "3g.40gb"},
       "nvidia/h100-80gb-hbm3/sm_90/mig-3g.40gb"},
      {{"NVIDIA-A10-SHARED", 8, 6, ""}, "nvidia/a10/sm_86"},
      {{"Tesla T4", 7, 5, ""}, "nvidia/tesla-t4/sm_75"},
      {{"NVIDIA GeForce RTX 4090", 8, 9, ""}, "nvidia/geforce-rtx-4090/sm_89"},
      {{"NVIDIA GB200", 10, 0, ""}, "nvidia/gb200/sm_100"},
      {{"NVIDIA RTX PRO 6000 Blackwell", 12, 1, ""}, "nvidia/rtx-pro-6000-blackwell/sm_121"},
      {{"  NVIDIA   H200  ", 9, 0, ""}, "nvidia/h200/sm_90"},
      {{"NVIDIA", 9, 0, ""}, "nvidia/nvidia/sm_90"},
      {{"", 9, 0, ""}, "nvidia/unknown/sm_90"},
      {{"///", 9, 0, ""}, "nvidia/unknown/sm_90"},
      {{"../../etc", 9, 0, ""}, "nvidia/..-..-etc/sm_90"},
      {{"H100\n\xff\x00Ü", 9, 0, ""}, "nvidia/h100/sm_90"},
      {{"H100", -5, 77, ""}, "nvidia/h100/sm_09"},
      {{"H100", 1000, -1, ""}, "nvidia/h100/sm_9990"},
      {{"az AZ 09 .+-x", 9, 0, ""}, "nvidia/az-az-09-.+-x/sm_90"},
      {{"x`{/:@[y", 9, 0, ""}, "nvidia/x-y/sm_90"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(GpuTypeOf(c.device), c.type);
    EXPECT_TRUE(IsGpuType(GpuTypeOf(c.device))) << c.type;
  }
}

TEST(GpuTypeOf, IsCpuWithoutAnyDevice) {
  EXPECT_EQ(GpuTypeOf(std::vector<GpuDevice>{}), "cpu");
  EXPECT_TRUE(IsGpuType("cpu"));
}

TEST(GpuTypeOf, MapsEqualDevicesToOneType) {
  EXPECT_EQ(GpuTypeOf(std::vector<GpuDevice>(8, {"NVIDIA H200", 9, 0, ""})), "nvidia/h200/sm_90");
}

TEST(GpuTypeOf, NamesEveryKindOfAMixedNode) {
  std::vector<GpuDevice> mix = {{"NVIDIA H100 PCIe", 9, 0, ""},
                                {"NVIDIA A100-PCIE-40GB", 8, 0, "1g.5gb"}};
  EXPECT_EQ(GpuTypeOf(mix), "nvidia/a100-pcie-40gb+h100-pcie/sm_80+sm_90/mig-1g.5gb");
  const std::string type = GpuTypeOf(mix);
  std::reverse(mix.begin(), mix.end());
  EXPECT_EQ(GpuTypeOf(mix), type);
  EXPECT_TRUE(IsGpuType(type));
}

TEST(GpuTypeOf, BoundsTheLength) {
  std::vector<GpuDevice> devices;
  for (int i = 0; i < 1000; ++i) {
    devices.push_back({std::string(1000, 'x') + std::to_string(i), i, i, std::string(999, 'm')});
    devices.push_back({"gpu" + std::to_string(i), i, i, std::to_string(i)});
  }
  EXPECT_LE(GpuTypeOf(devices).size(), 253U);
  EXPECT_EQ(GpuTypeOf(devices).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.+-/_"),
            std::string::npos);
}

TEST(GpuTypeOf, TruncatesEachPart) {
  const std::string name(63, 'n');
  const std::string mig(60, 'm');
  EXPECT_EQ(GpuTypeOf(GpuDevice{.name = name + "xy", .sm_major = 9, .mig_profile = mig + "xyz"}),
            "nvidia/" + name + "/sm_90/mig-" + mig);
  EXPECT_EQ(GpuTypeOf(GpuDevice{.name = std::string(62, 'n') + "-x", .sm_major = 9}),
            "nvidia/" + std::string(62, 'n') + "/sm_90");
  std::vector<GpuDevice> devices;
  for (int i = 10; i < 30; ++i) {
    devices.push_back({"gpu-number-" + std::to_string(i), i, 0, ""});
  }
  const std::string type = GpuTypeOf(devices);
  const size_t first = type.find('/');
  const size_t last = type.rfind('/');
  EXPECT_EQ(last - first - 1, 120U) << type;
  EXPECT_EQ(type.size() - last - 1, 40U) << type;
}

TEST(IsGpuType, AcceptsSeveralArchitecturesUpToTheLongestText) {
  for (const char* good : {"nvidia/h100/sm_90", "nvidia/a+b/sm_80+sm_90", "amd/mi300/sm_1000",
                           "a/z/sm_09", "nvidia/h100/sm_90/mig-1g.10gb+me"}) {
    EXPECT_TRUE(IsGpuType(good)) << good;
  }
  const std::string longest = "nvidia/" + std::string(240, 'a') + "/sm_90";
  ASSERT_EQ(longest.size(), 253U);
  EXPECT_TRUE(IsGpuType(longest));
  EXPECT_FALSE(IsGpuType("a" + longest));
}

TEST(IsGpuType, RefusesOtherTexts) {
  for (const char* bad : {"",
                          "gpu",
                          "CPU",
                          "nvidia",
                          "nvidia/h100",
                          "nvidia//sm_90",
                          "nvidia/h100/90",
                          "nvidia/h100/sm_",
                          "nvidia/h100/sm_9",
                          "nvidia/h100/sm_90000",
                          "nvidia/h100/sm_90+",
                          "nvidia/h100/sm_90+80",
                          "nvidia/H100/sm_90",
                          "nvidia/h 100/sm_90",
                          "/h100/sm_90",
                          "nvidia/h100/sm_90/1g.10gb",
                          "nvidia/h100/sm_90/mig-",
                          "nvidia/h100/sm_90/mig-a/b",
                          "nvidia/h100/sm_90/",
                          "nvidia/h100/sm_90\n"}) {
    EXPECT_FALSE(IsGpuType(bad)) << bad;
  }
  EXPECT_FALSE(IsGpuType("nvidia/" + std::string(250, 'a') + "/sm_90"));
}

TEST(GpuType, AmdGpuHasItsVendorAndArchitecture) {
  const GpuDevice mi300x = {
      .name = "device-74a1-304cu-192gb", .vendor = "amd", .architecture = "gfx942"};
  EXPECT_EQ(GpuTypeOf(mi300x), "amd/device-74a1-304cu-192gb/gfx942");
  const GpuDevice mi210 = {.name = "AMD Instinct MI210", .vendor = "amd", .architecture = "gfx90a"};
  EXPECT_EQ(GpuTypeOf(mi210), "amd/instinct-mi210/gfx90a");
  const std::string both = GpuTypeOf({mi210, GpuDevice{.name = "NVIDIA L4", .sm_major = 8}});
  EXPECT_EQ(both, "amd+nvidia/instinct-mi210+l4/gfx90a+sm_80");
  EXPECT_TRUE(IsGpuType(both));
}

TEST(GpuType, ChecksTheArchitecture) {
  for (const char* good :
       {"amd/x/gfx900", "amd/x/gfx90a", "amd/x/gfx1201", "amd/x/gfx90a+gfx942"}) {
    EXPECT_TRUE(IsGpuType(good)) << good;
  }
  for (const char* bad : {"amd/x/gfx", "amd/x/gfx9", "amd/x/gfx90A", "amd/x/gfx90g",
                          "amd/x/gfx123456", "amd/x/gfx942+", "amd/x/+gfx942", "amd/x/90a"}) {
    EXPECT_FALSE(IsGpuType(bad)) << bad;
  }
}

}  // namespace
}  // namespace cachewarm::fingerprint
