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

TEST_F(NodeProbe, EqualDevicesAreOneKind) {
  gpu::Devices devices = EightH100();
  for (gpu::Device& device : devices.devices) {
    device.memory_bytes = 85'520'809'984;
  }
  devices.devices[3].memory_bytes -= 1 << 20;  // reserved by the driver
  ScriptedProbe probe(devices);
  const auto facts = ProbeNode({.proc_root = temp_.path(), .facts_file = {}}, probe);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->gpu_kinds, std::vector<std::string>{"nvidia/h100-80gb-hbm3/sm_90"});
  EXPECT_FALSE(HasMixedKinds(*facts));
  EXPECT_GT(facts->gpu_memory_bytes, uint64_t{85'000'000'000});
}

TEST_F(NodeProbe, DifferentDevicesAreMixedKinds) {
  const gpu::Device mig = {.name = "NVIDIA A100-SXM4-40GB", .sm_major = 8, .mig_profile = "1g.5gb"};
  const gpu::Device wider = {
      .name = "NVIDIA A100-SXM4-40GB", .sm_major = 8, .mig_profile = "3g.20gb"};
  const gpu::Device whole = {.name = "NVIDIA A100-SXM4-40GB", .sm_major = 8};
  const gpu::Device l4 = {.name = "NVIDIA L4", .sm_major = 8, .sm_minor = 9};
  const std::vector<gpu::Device> mixes[] = {{mig, wider}, {mig, whole}, {whole, l4}};
  for (const std::vector<gpu::Device>& devices : mixes) {
    ScriptedProbe probe(gpu::Devices{.devices = devices, .source = "nvml"});
    const auto facts = ProbeNode({.proc_root = temp_.path(), .facts_file = {}}, probe);
    ASSERT_TRUE(facts.ok()) << facts.status();
    EXPECT_TRUE(HasMixedKinds(*facts)) << facts->gpu_type;
    EXPECT_EQ(facts->gpu_kinds.size(), 2U);
  }
  ScriptedProbe same(gpu::Devices{.devices = {mig, mig}, .source = "nvml"});
  EXPECT_FALSE(HasMixedKinds(*ProbeNode({.proc_root = temp_.path(), .facts_file = {}}, same)));
}

TEST_F(NodeProbe, MemoryIsThatOfOneDeviceIfAllHaveTheSame) {
  const auto memory = [&](uint64_t first, uint64_t second) {
    ScriptedProbe probe(gpu::Devices{.devices = {{.name = "NVIDIA L4", .memory_bytes = first},
                                                 {.name = "NVIDIA L4", .memory_bytes = second}},
                                     .source = "nvml"});
    return ProbeNode({.proc_root = temp_.path(), .facts_file = {}}, probe)->gpu_memory_bytes;
  };
  EXPECT_EQ(memory(10'000, 10'000), 10'000U);
  EXPECT_EQ(memory(10'000, 9'900), 9'900U) << "drivers reserve a little of some devices";
  EXPECT_EQ(memory(10'000, 9'899), 0U);
  EXPECT_EQ(memory(0, 0), 0U);
}

// The driver's libraries or device files are missing in the agent's container.
TEST_F(NodeProbe, GpuThatOnlyTheKernelListsIsAnErrorForANode) {
  ScriptedProbe none(gpu::Devices{.devices = {}, .driver_version = {}, .source = "none"});
  std::filesystem::create_directories(temp_ / "driver/nvidia/gpus/0000:1b:00.0");
  NodeProbeOptions options{.proc_root = temp_.path(), .facts_file = {}, .describes_node = true};
  const absl::Status status = ProbeNode(options, none).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("lists 1 GPUs"));
  options.describes_node = false;
  EXPECT_EQ(ProbeNode(options, none)->gpu_type, "cpu") << "a process without the GPU";
  options.describes_node = true;
  std::filesystem::remove_all(temp_ / "driver");
  EXPECT_EQ(ProbeNode(options, none)->gpu_type, "cpu");
}

TEST_F(NodeProbe, FactsWithoutGpuNeedNoDriver) {
  const auto facts = ProbeNodeWithoutGpu({.proc_root = temp_.path(), .facts_file = {}});
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->gpu_type, "");
  EXPECT_THAT(facts->cpu_class, StartsWith("x86-64/amd-25-17/"));
  Write("facts.yaml", "gpuType: nvidia/l4/sm_89\n");
  EXPECT_EQ(ProbeNodeWithoutGpu({.proc_root = temp_.path(), .facts_file = temp_ / "facts.yaml"})
                ->gpu_type,
            "nvidia/l4/sm_89");
}

TEST_F(NodeProbe, AmdGpusMakeAType) {
  ScriptedProbe probe(
      gpu::Devices{.devices = std::vector<gpu::Device>(8, {.vendor = gpu::Vendor::kAmd,
                                                           .name = "device-74a1-304cu-192gb",
                                                           .architecture = "gfx942"}),
                   .driver_version = "6.8.5",
                   .source = "kfd"});
  const auto facts = ProbeNode({.proc_root = temp_.path(), .facts_file = {}}, probe);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->gpu_type, "amd/device-74a1-304cu-192gb/gfx942");
  EXPECT_TRUE(fingerprint::IsGpuType(facts->gpu_type));
  EXPECT_EQ(facts->driver_version, "6.8.5");
}

TEST_F(NodeProbe, HiddenAmdGpuIsAnErrorForANode) {
  ScriptedProbe probe(gpu::Devices{.source = "none", .hidden = 8});
  NodeProbeOptions options{.proc_root = temp_.path(), .facts_file = {}, .describes_node = true};
  EXPECT_THAT(std::string(ProbeNode(options, probe).status().message()),
              HasSubstr("properties of 8 AMD GPUs"));
  options.describes_node = false;
  EXPECT_EQ(ProbeNode(options, probe)->gpu_type, "cpu");
}

TEST_F(NodeProbe, DeclaredTypeDecidesAMixedNode) {
  gpu::Devices devices = EightH100();
  devices.devices[0].name = "NVIDIA L4";
  ScriptedProbe probe(devices);
  Write("facts.yaml", "gpuType: nvidia/h100-80gb-hbm3/sm_90\n");
  const auto facts =
      ProbeNode({.proc_root = temp_.path(), .facts_file = temp_ / "facts.yaml"}, probe);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->gpu_kinds, std::vector<std::string>{"nvidia/h100-80gb-hbm3/sm_90"});
  EXPECT_FALSE(HasMixedKinds(*facts));
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
