// SPDX-License-Identifier: Apache-2.0
#include "lib/probe/node_probe.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/fakes/temp_dir.h"

namespace cachewarm::probe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kCpu[] =
    "processor : 0\nvendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\nflags : avx avx2\n";

class ScriptedProbe final : public gpu::Probe {
 public:
  explicit ScriptedProbe(absl::StatusOr<gpu::Devices> answer) : answer_(std::move(answer)) {}
  absl::StatusOr<gpu::Devices> Run() override {
    ++asked;
    return answer_;
  }
  int asked = 0;

 private:
  absl::StatusOr<gpu::Devices> answer_;
};

gpu::Devices EightH100() {
  return {.devices = std::vector<gpu::Device>(
              8, {.name = "NVIDIA H100 80GB HBM3", .sm_major = 9, .sm_minor = 0}),
          .driver_version = "570.86.15",
          .source = "nvml"};
}

class NodeProbe : public ::testing::Test {
 protected:
  void SetUp() override { Write("cpuinfo", kCpu); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(temp_ / name) << text;
  }
  absl::StatusOr<fingerprint::NodeFacts> Probe(const std::string& facts = "") {
    if (!facts.empty()) {
      Write("facts.yaml", facts);
    }
    return ProbeNode(
        {.proc_root = temp_.path(), .facts_file = facts.empty() ? "" : temp_ / "facts.yaml"}, gpu_);
  }

  TempDir temp_;
  ScriptedProbe gpu_{EightH100()};
};

TEST_F(NodeProbe, ReadsDriverAndProc) {
  const auto facts = Probe();
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->gpu_type, "nvidia/h100-80gb-hbm3/sm_90");
  EXPECT_EQ(facts->device_count, 8);
  EXPECT_EQ(facts->driver_version, "570.86.15");
  EXPECT_EQ(facts->gpu_source, "nvml");
  EXPECT_EQ(facts->cpu_source, "proc");
  EXPECT_THAT(facts->cpu_class, StartsWith("x86-64/amd-25-17/"));
}

TEST_F(NodeProbe, NodeWithoutGpuHasTypeCpu) {
  ScriptedProbe none(gpu::Devices{.devices = {}, .driver_version = "570", .source = "none"});
  const auto facts = ProbeNode({.proc_root = temp_.path(), .facts_file = {}}, none);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->gpu_type, "cpu");
  EXPECT_EQ(facts->driver_version, "");
  EXPECT_EQ(facts->device_count, 0);
}

TEST_F(NodeProbe, ProbesFactsMissingFromTheFile) {
  const auto facts = Probe("gpuType: nvidia/a10/sm_86\ndeviceCount: 2\n");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->gpu_type, "nvidia/a10/sm_86");
  EXPECT_EQ(facts->device_count, 2);
  EXPECT_EQ(facts->gpu_source, "file");
  EXPECT_EQ(gpu_.asked, 0);
  EXPECT_THAT(facts->cpu_class, StartsWith("x86-64/amd-25-17/"));
}

TEST_F(NodeProbe, DeclaredCpuClassNeedsNoProc) {
  std::remove((temp_ / "cpuinfo").c_str());
  const auto facts = Probe("cpuClass: x86-64-v3/intel-6-85/0123abcd\n");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->cpu_class, "x86-64-v3/intel-6-85/0123abcd");
  EXPECT_EQ(facts->gpu_type, "nvidia/h100-80gb-hbm3/sm_90");
}

TEST_F(NodeProbe, ErrorsNameTheFile) {
  EXPECT_THAT(std::string(Probe("gpuType: H100\n").status().message()),
              HasSubstr("facts.yaml: gpuType: expected"));
  EXPECT_THAT(std::string(ProbeNode({.facts_file = temp_ / "absent"}, gpu_).status().message()),
              HasSubstr("absent: cannot be read"));
  Write("cpuinfo", "nothing : here\n");
  EXPECT_THAT(std::string(Probe().status().message()), HasSubstr("/cpuinfo: "));
  Write("cpuinfo", std::string((16U << 20U) + 1, 'x'));
  EXPECT_THAT(std::string(Probe().status().message()), HasSubstr("longer than"));
  EXPECT_TRUE(absl::IsInvalidArgument(Probe(std::string(70'000, '#')).status()));
}

TEST_F(NodeProbe, FailingDriverIsRetryable) {
  ScriptedProbe broken(absl::UnavailableError("NVML failed (start): unknown error"));
  EXPECT_TRUE(absl::IsUnavailable(
      ProbeNode({.proc_root = temp_.path(), .facts_file = {}}, broken).status()));
}

TEST_F(NodeProbe, ReadsThisMachine) {
  const auto facts = ProbeNode({}, gpu_);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE(fingerprint::IsCpuClass(facts->cpu_class)) << facts->cpu_class;
  EXPECT_FALSE(facts->cpu.flags.empty());
}

}  // namespace
}  // namespace cachewarm::probe
