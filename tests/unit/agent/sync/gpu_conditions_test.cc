// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/gpu_conditions.h"

#include <gmock/gmock.h>

#include "lib/api/names.h"

namespace cachewarm::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr WallTime kNow{std::chrono::milliseconds(1'000'500)};
constexpr WallTime kLater{std::chrono::milliseconds(2'000'000)};

GpuObservation Sees(const std::string& type, std::vector<std::string> kinds) {
  return {.facts = {.gpu_type = type, .gpu_kinds = std::move(kinds), .gpu_source = "nvml"}};
}

GpuObservation SeesNone() {
  return {.facts = {.gpu_source = "none"}};
}

GpuObservation SeesH200() {
  return Sees("nvidia/h200/sm_90", {"nvidia/h200/sm_90"});
}

const api::NodeOffer kEightGpus{.devices = {{"nvidia.com/gpu", 8}}};

std::vector<std::string> Listed(const std::vector<api::Condition>& conditions) {
  std::vector<std::string> out;
  for (const api::Condition& each : conditions) {
    out.push_back(each.type + "=" + each.status);
  }
  return out;
}

TEST(GpuConditions, HealthyNodeHasNone) {
  EXPECT_THAT(GpuConditions({}, SeesNone(), {}, kNow), IsEmpty());
  EXPECT_THAT(GpuConditions({}, SeesH200(), kEightGpus, kNow), IsEmpty());
  EXPECT_THAT(GpuConditions({}, SeesH200(), {}, kNow), IsEmpty());
  EXPECT_THAT(GpuConditions({}, SeesNone(), {.devices = {{"nvidia.com/gpu", 0}}}, kNow), IsEmpty());
}

TEST(GpuConditions, OfferedGpuThatTheDriverDoesNotReportIsNotVisible) {
  const auto conditions = GpuConditions({}, SeesNone(), kEightGpus, kNow);
  ASSERT_EQ(Listed(conditions), std::vector<std::string>{"GPUNotVisible=True"});
  EXPECT_EQ(conditions[0].reason, "DriverNotVisible");
  EXPECT_THAT(conditions[0].message, HasSubstr("kubelet offers 8 nvidia.com/gpu on this node, but "
                                               "the agent finds none (GPU type cpu; source none)"));
  EXPECT_THAT(conditions[0].message, HasSubstr("agent.runtimeClassName"));
  EXPECT_EQ(conditions[0].last_transition_time, std::chrono::floor<std::chrono::seconds>(kNow));
}

TEST(GpuConditions, GpuInAResourceSliceThatTheDriverDoesNotReportIsNotVisible) {
  const api::NodeOffer offer{.published = {{"gpu.nvidia.com", "NVIDIA H200", "9.0.0", 8}}};
  const auto conditions = GpuConditions({}, SeesNone(), offer, kNow);
  ASSERT_EQ(Listed(conditions), std::vector<std::string>{"GPUNotVisible=True"});
  EXPECT_THAT(conditions[0].message,
              HasSubstr("ResourceSlices list 8 gpu.nvidia.com on this node, but the agent finds"));
  EXPECT_THAT(conditions[0].message, HasSubstr("agent.runtimeClassName"));
  EXPECT_THAT(GpuConditions({}, SeesH200(), offer, kNow), IsEmpty());
}

TEST(GpuConditions, RemedyDependsOnTheVendor) {
  const auto conditions = GpuConditions({}, SeesNone(), {.devices = {{"amd.com/gpu", 4}}}, kNow);
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_THAT(conditions[0].message, HasSubstr("amdgpu"));
}

TEST(GpuConditions, ConditionStaysListedAsFalse) {
  const auto before = GpuConditions({}, SeesNone(), kEightGpus, kNow);
  const auto same = GpuConditions(before, SeesNone(), kEightGpus, kLater);
  EXPECT_EQ(same, before) << "an unchanged condition must not cause a status write";
  const auto after = GpuConditions(before, SeesH200(), kEightGpus, kLater);
  ASSERT_EQ(Listed(after), std::vector<std::string>{"GPUNotVisible=False"});
  EXPECT_EQ(after[0].reason, "DevicesVisible");
  EXPECT_EQ(after[0].last_transition_time, kLater);
}

TEST(GpuConditions, DriverThatNeverAnsweredLeavesTheTypeUnknown) {
  GpuObservation gpu = SeesNone();
  gpu.facts.gpu_type = "";
  gpu.is_gpu_unknown = true;
  gpu.probe_error = "the driver did not answer within 30 s";
  const auto conditions = GpuConditions({}, gpu, kEightGpus, kNow);
  ASSERT_EQ(Listed(conditions),
            (std::vector<std::string>{"GPUNotVisible=True", "GPUProbeFailed=True"}));
  EXPECT_THAT(conditions[0].message, HasSubstr("does not answer (the driver did not answer"));
  EXPECT_THAT(conditions[1].message,
              HasSubstr("the node gets no new bundle until the driver answers"));
  EXPECT_EQ(ReportedGpuType(gpu), "");
}

TEST(GpuConditions, DriverThatStartsSlowlyIsNamed) {
  GpuObservation gpu = SeesNone();
  gpu.facts.gpu_type = "";
  gpu.is_gpu_unknown = true;
  const auto conditions = GpuConditions({}, gpu, kEightGpus, kNow);
  ASSERT_EQ(Listed(conditions), std::vector<std::string>{"GPUNotVisible=True"});
  EXPECT_THAT(conditions[0].message, HasSubstr("but the driver has not answered yet;"));
}

TEST(GpuConditions, LaterProbeFailureKeepsTheType) {
  GpuObservation gpu = SeesH200();
  gpu.probe_error = "NVML failed (device count): GPU is lost";
  const auto conditions = GpuConditions({}, gpu, kEightGpus, kNow);
  ASSERT_EQ(Listed(conditions), std::vector<std::string>{"GPUProbeFailed=True"});
  EXPECT_THAT(conditions[0].message,
              HasSubstr("GPU is lost; the last known GPU type nvidia/h200/sm_90 stays in use"));
  EXPECT_EQ(ReportedGpuType(gpu), "nvidia/h200/sm_90");
}

TEST(GpuConditions, SeveralKindsMakeNoType) {
  const GpuObservation gpu =
      Sees("nvidia/a10+l4/sm_86+sm_89", {"nvidia/a10/sm_86", "nvidia/l4/sm_89"});
  const auto conditions = GpuConditions({}, gpu, kEightGpus, kNow);
  ASSERT_EQ(Listed(conditions), std::vector<std::string>{"GPUKindsMixed=True"});
  EXPECT_THAT(conditions[0].message, HasSubstr("(nvidia/a10/sm_86, nvidia/l4/sm_89)"));
  EXPECT_EQ(ReportedGpuType(gpu), "");
  EXPECT_EQ(ReportedGpuType(SeesH200()), "nvidia/h200/sm_90");
  EXPECT_EQ(ReportedGpuType(SeesNone()), "cpu");
}

TEST(GpuConditions, LabelsAndDriverAreCompared) {
  const api::NodeOffer offer{.devices = {{"nvidia.com/gpu", 8}},
                             .labels = {{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"}}};
  const auto conditions = GpuConditions({}, SeesH200(), offer, kNow);
  ASSERT_EQ(Listed(conditions), std::vector<std::string>{"GPULabelsDiffer=True"});
  EXPECT_THAT(conditions[0].message, HasSubstr("NVIDIA-A100-SXM4-80GB"));
  EXPECT_THAT(conditions[0].message, HasSubstr("nvidia/h200/sm_90"));
  EXPECT_EQ(ReportedGpuType(SeesH200()), "nvidia/h200/sm_90") << "the driver wins";
}

TEST(GpuConditions, ResourceSlicesAndDriverAreCompared) {
  const api::NodeOffer offer{.published = {{"gpu.nvidia.com", "NVIDIA H100 NVL", "9.0.0", 8}}};
  const auto conditions = GpuConditions({}, SeesH200(), offer, kNow);
  ASSERT_EQ(Listed(conditions), std::vector<std::string>{"GPULabelsDiffer=True"});
  EXPECT_THAT(conditions[0].message, HasSubstr("NVIDIA H100 NVL"));
  EXPECT_THAT(conditions[0].message, HasSubstr("nvidia/h200/sm_90"));
  EXPECT_THAT(conditions[0].message, HasSubstr("restart the DRA driver's pod"));
  const auto agree = GpuConditions(conditions, SeesH200(), kEightGpus, kLater);
  EXPECT_EQ(Listed(agree), std::vector<std::string>{"GPULabelsDiffer=False"});
}

TEST(GpuConditions, TypesOfOtherVersionsAreDropped) {
  const std::vector<api::Condition> before = {{.type = "Old", .status = "True", .reason = "R"}};
  EXPECT_THAT(GpuConditions(before, SeesH200(), kEightGpus, kNow), IsEmpty());
}

}  // namespace
}  // namespace cachewarm::agent
