// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/fit.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cachewarm::bundle {
namespace {

constexpr char kGpu[] = "nvidia/h100-80gb-hbm3/sm_90";
constexpr char kCpu[] = "x86-64-v4/amd-25-17/5c0d9f21";
constexpr char kOtherCpu[] = "x86-64-v3/intel-6-85/0123abcd";

Bundle MadeFor(const std::string& gpu_type, const std::string& cpu_class, bool native) {
  Bundle bundle{.digest = DigestOf("bundle")};
  bundle.config.facts.factors = {{"gpuType", gpu_type}, {"cpuClass", cpu_class}};
  bundle.config.facts.requires_cpu_class = native;
  return bundle;
}

TEST(Fit, MachineOfSameKindMayReadBundle) {
  EXPECT_TRUE(CheckFit(MadeFor(kGpu, kCpu, true), kGpu, kCpu).ok());
}

TEST(Fit, OtherGpuTypeIsRejectedWithBothNames) {
  const absl::Status status = CheckFit(MadeFor(kGpu, kCpu, false), "cpu", kCpu);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(kGpu));
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("but this node is cpu and"));
}

TEST(Fit, OtherCpuClassIsRejectedOnlyWithHostCode) {
  EXPECT_TRUE(absl::IsInvalidArgument(CheckFit(MadeFor(kGpu, kOtherCpu, true), kGpu, kCpu)));
  EXPECT_TRUE(CheckFit(MadeFor(kGpu, kOtherCpu, false), kGpu, kCpu).ok());
}

TEST(Fit, BundleNeedsGpuCodeThatTheMachineRuns) {
  Bundle bundle = MadeFor(kGpu, kCpu, true);
  bundle.config.facts.gpu_architectures = {"sm_80", "sm_89"};
  const absl::Status status = CheckFit(bundle, kGpu, kCpu);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("has GPU code only for sm_80, sm_89, and a node of that type "
                                   "runs code for sm_90"));
  bundle.config.facts.gpu_architectures = {"sm_80", "sm_90a"};
  EXPECT_TRUE(CheckFit(bundle, kGpu, kCpu).ok());
  bundle.config.facts.gpu_architectures = {"compute_80", "sm_80"};
  EXPECT_TRUE(CheckFit(bundle, kGpu, kCpu).ok()) << "the driver compiles PTX";
}

TEST(Fit, BundleWithoutFactorsFitsNoMachine) {
  EXPECT_TRUE(absl::IsInvalidArgument(CheckFit(Bundle(), kGpu, kCpu)));
}

}  // namespace
}  // namespace cachewarm::bundle
