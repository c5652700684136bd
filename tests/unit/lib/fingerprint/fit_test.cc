// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/fit.h"

#include <gmock/gmock.h>

namespace cachewarm::fingerprint {
namespace {

constexpr char kH100[] = "nvidia/h100-80gb-hbm3/sm_90";
constexpr char kPcie[] = "nvidia/h100-pcie/sm_90";
constexpr char kZen4[] = "x86-64-v4/amd-25-17/11111111";
constexpr char kZen2[] = "x86-64-v3/amd-23-49/22222222";

KeyFactors Wanted() {
  return {.gpu_type = kH100,
          .cpu_class = kZen4,
          .image = "llm:v2",
          .devices = 1,
          .container = "server"};
}

BundleFacts Bundle(const std::string& digest, int minutes) {
  return {.factors = Wanted(),
          .native_host_code = true,
          .published = WallTime(std::chrono::minutes(minutes)),
          .digest = digest};
}

TEST(FitsNode, RefusesNativeCodeOfADifferentCpuClass) {
  struct Case {
    const char* gpu_type;
    const char* cpu_class;
    bool native;
    bool fits;
  };
  for (const Case& c : {Case{kH100, kZen4, true, true}, Case{kH100, kZen2, true, false},
                        Case{kH100, kZen2, false, true}, Case{kH100, kZen4, false, true},
                        Case{kPcie, kZen4, true, false}, Case{kPcie, kZen4, false, false},
                        Case{"cpu", kZen4, true, false}, Case{"cpu", kZen4, false, false}}) {
    BundleFacts bundle = Bundle("a", 1);
    bundle.native_host_code = c.native;
    EXPECT_EQ(FitsNode(bundle, c.gpu_type, c.cpu_class), c.fits)
        << c.gpu_type << " " << c.cpu_class << " native " << c.native;
  }
}

TEST(FitsNode, AppliesToNodesWithoutGpu) {
  BundleFacts bundle = Bundle("a", 1);
  bundle.factors.gpu_type = "cpu";
  EXPECT_TRUE(FitsNode(bundle, "cpu", kZen4));
  EXPECT_FALSE(FitsNode(bundle, "cpu", kZen2));
}

TEST(Serves, RequiresTheSameImageDevicesAndContainer) {
  EXPECT_TRUE(Serves(Bundle("a", 1), Wanted()));
  BundleFacts other = Bundle("a", 1);
  other.factors.image = "llm:v1";
  EXPECT_FALSE(Serves(other, Wanted()));
  other = Bundle("a", 1);
  other.factors.devices = 2;
  EXPECT_FALSE(Serves(other, Wanted()));
  other = Bundle("a", 1);
  other.factors.container = "sidecar";
  EXPECT_FALSE(Serves(other, Wanted()));
}

TEST(ChooseBundle, PrefersTheNewestOfTheSameCpuClass) {
  BundleFacts neutral = Bundle("n", 90);
  neutral.factors.cpu_class = kZen2;
  neutral.native_host_code = false;
  const std::vector<BundleFacts> bundles = {Bundle("old", 1), Bundle("new", 5), neutral};
  ASSERT_NE(ChooseBundle(bundles, Wanted()), nullptr);
  EXPECT_EQ(ChooseBundle(bundles, Wanted())->digest, "new");
}

TEST(ChooseBundle, FallsBackToABundleWithoutNativeCode) {
  BundleFacts neutral = Bundle("neutral", 1);
  neutral.factors.cpu_class = kZen2;
  neutral.native_host_code = false;
  BundleFacts foreign = Bundle("foreign", 2);
  foreign.factors.cpu_class = kZen2;
  ASSERT_NE(ChooseBundle({foreign, neutral}, Wanted()), nullptr);
  EXPECT_EQ(ChooseBundle({foreign, neutral}, Wanted())->digest, "neutral");
  EXPECT_EQ(ChooseBundle({foreign}, Wanted()), nullptr);
  EXPECT_EQ(ChooseBundle({}, Wanted()), nullptr);
}

TEST(ChooseSeed, TakesTheNewestOfAnyImage) {
  BundleFacts v1 = Bundle("v1", 1);
  v1.factors.image = "llm:v1";
  BundleFacts v0 = Bundle("v0", 9);
  v0.factors.image = "llm:v0";
  ASSERT_NE(ChooseSeed({v1, v0}, Wanted()), nullptr);
  EXPECT_EQ(ChooseSeed({v1, v0}, Wanted())->digest, "v0");
}

TEST(ChooseSeed, NeverCrossesGpuTypeOrCpuClass) {
  BundleFacts pcie = Bundle("pcie", 9);
  pcie.factors.gpu_type = kPcie;
  BundleFacts zen2 = Bundle("zen2", 9);
  zen2.factors.cpu_class = kZen2;
  EXPECT_EQ(ChooseSeed({pcie, zen2}, Wanted()), nullptr);
  zen2.native_host_code = false;
  EXPECT_NE(ChooseSeed({pcie, zen2}, Wanted()), nullptr);
}

TEST(ChooseSeed, PrefersTheSameContainerAndDevicesToANewerBundle) {
  BundleFacts near = Bundle("near", 1);
  near.factors.image = "llm:v1";
  BundleFacts two = Bundle("two", 50);
  two.factors.devices = 2;
  BundleFacts sidecar = Bundle("sidecar", 99);
  sidecar.factors.container = "sidecar";
  EXPECT_EQ(ChooseSeed({sidecar, two, near}, Wanted())->digest, "near");
  EXPECT_EQ(ChooseSeed({sidecar, two}, Wanted())->digest, "two");
}

TEST(ChooseSeed, DoesNotDependOnTheOrder) {
  const std::vector<BundleFacts> one = {Bundle("a", 1), Bundle("b", 1)};
  const std::vector<BundleFacts> two = {Bundle("b", 1), Bundle("a", 1)};
  EXPECT_EQ(ChooseSeed(one, Wanted())->digest, "b");
  EXPECT_EQ(ChooseSeed(two, Wanted())->digest, "b");
}

}  // namespace
}  // namespace cachewarm::fingerprint
