// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "lib/gpu/probe.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::gpu {
namespace {

// The files of sysfs that the amdgpu driver makes, below a directory.
class KfdProbeTest : public ::testing::Test {
 protected:
  void AddProcessor(int node) {
    Write(node, "properties", "cpu_cores_count 64\nsimd_count 0\ngfx_target_version 0\n");
    Write(node, "mem_banks/0/properties", "heap_type 0\nsize_in_bytes 540000000000\n");
  }
  void AddGpu(int node, int device, int units, int version, uint64_t bytes) {
    Write(node, "properties",
          fmt::format("cpu_cores_count 0\nsimd_count {}\nsimd_per_cu 4\nvendor_id 4098\n"
                      "device_id {}\ngfx_target_version {}\nunique_id 12345678901234567890\n",
                      units * 4, device, version));
    Write(node, "name", "ip discovery\n");
    Write(node, "mem_banks/0/properties",
          fmt::format("heap_type 1\nsize_in_bytes {}\nflags 0\nwidth 8192\n", bytes));
  }
  void Write(int node, const std::string& file, const std::string& text) {
    temp_.Write(fmt::format("sys/class/kfd/kfd/topology/nodes/{}/{}", node, file), text);
  }
  absl::StatusOr<Devices> Ask() { return MakeKfdProbe(temp_.path())->Run(); }

  TempDir temp_;
};

TEST_F(KfdProbeTest, ReportsGpusAndNoProcessors) {
  AddProcessor(0);
  AddProcessor(1);
  for (int i = 2; i < 10; ++i) {
    AddGpu(i, 0x74a1, 304, 90'402, 206'141'652'992);
  }
  temp_.Write("sys/module/amdgpu/version", "6.8.5\n");
  const auto devices = Ask();
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->source, "kfd");
  EXPECT_EQ(devices->driver_version, "6.8.5");
  ASSERT_EQ(devices->devices.size(), 8U);
  const Device& device = devices->devices[0];
  EXPECT_EQ(device.vendor, Vendor::kAmd);
  EXPECT_EQ(device.name, "device-74a1-304cu-192gb");
  EXPECT_EQ(device.architecture, "gfx942");
  EXPECT_EQ(device.memory_bytes, uint64_t{206'141'652'992});
}

TEST_F(KfdProbeTest, ArchitectureHasHexadecimalDigits) {
  const std::pair<int, const char*> cases[] = {
      {90'010, "gfx90a"},   {90'006, "gfx906"},   {90'402, "gfx942"},  {90'500, "gfx950"},
      {100'302, "gfx1032"}, {110'001, "gfx1101"}, {120'001, "gfx1201"}};
  for (const auto& [version, name] : cases) {
    AddGpu(1, 1, 1, version, 1);
    EXPECT_EQ(Ask()->devices.at(0).architecture, name);
  }
  for (const int version : {1, 9'000, 91'600, 90'016, 9'000'000}) {
    AddGpu(1, 1, 1, version, 1);
    EXPECT_TRUE(absl::IsUnavailable(Ask().status())) << version;
  }
}

TEST_F(KfdProbeTest, PartitionsDifferFromTheWholeGpu) {
  AddGpu(1, 0x74a1, 304, 90'402, 206'141'652'992);
  const std::string whole = Ask()->devices.at(0).name;
  AddGpu(1, 0x74a1, 38, 90'402, 25'767'706'624);
  EXPECT_EQ(Ask()->devices.at(0).name, "device-74a1-38cu-24gb");
  EXPECT_NE(Ask()->devices.at(0).name, whole);
}

TEST_F(KfdProbeTest, MachineWithoutDriverHasNoDevice) {
  const auto devices = Ask();
  ASSERT_TRUE(devices.ok());
  EXPECT_EQ(devices->source, "none");
  EXPECT_TRUE(devices->devices.empty());
}

TEST_F(KfdProbeTest, MalformedFilesAreNoDevices) {
  Write(0, "properties", "");
  Write(1, "properties", std::string(1 << 20, 'x'));
  Write(2, "properties", "simd_count\nsimd_count many\n\n simd_count 4");
  Write(3, "gpu_id", "7");
  const auto devices = Ask();
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_TRUE(devices->devices.empty());
  EXPECT_EQ(devices->hidden, 0);
}

// The kernel refuses the properties of a GPU that the device cgroup of the container excludes. A
// write-only file of /proc/sys stands for it: even root cannot read it.
TEST_F(KfdProbeTest, GpuOfAnotherContainerIsHidden) {
  AddGpu(1, 0x74a1, 304, 90'402, 1);
  const std::string file = temp_ / "sys/class/kfd/kfd/topology/nodes/1/properties";
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/proc/sys/vm/compact_memory", file);
  const auto devices = Ask();
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_TRUE(devices->devices.empty());
  EXPECT_EQ(devices->hidden, 1);
}

TEST_F(KfdProbeTest, MemoryIsThatOfTheHeapsOnTheDevice) {
  AddGpu(0, 0x74a1, 304, 90'402, uint64_t{64} << 30U);
  Write(0, "mem_banks/1/properties", fmt::format("heap_type 2\nsize_in_bytes {}\n", 32LL << 30U));
  Write(0, "mem_banks/2/properties", fmt::format("heap_type 3\nsize_in_bytes {}\n", 16LL << 30U));
  const auto devices = Ask();
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->devices.at(0).memory_bytes, uint64_t{96} << 30U);
}

TEST_F(KfdProbeTest, JoinedProbesReportTheDevicesOfAll) {
  AddGpu(0, 0x74a1, 304, 90'402, 206'141'652'992);
  temp_.Write("sys/module/amdgpu/version", "6.8.5\n");
  const TempDir other;
  const std::string nodes = "sys/class/kfd/kfd/topology/nodes/";
  std::filesystem::create_directories(other / (nodes + "0"));
  std::filesystem::create_symlink("/proc/sys/vm/compact_memory", other / (nodes + "0/properties"));
  const auto run = [&] {
    std::vector<std::unique_ptr<Probe>> probes;
    probes.push_back(MakeEmptyProbe());
    probes.push_back(MakeKfdProbe(temp_.path()));
    probes.push_back(MakeKfdProbe(other.path()));
    return JoinProbes(std::move(probes))->Run();
  };
  const auto devices = run();
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->devices.size(), 1U);
  EXPECT_EQ(devices->hidden, 1);
  EXPECT_EQ(devices->source, "kfd");
  EXPECT_EQ(devices->driver_version, "6.8.5");
  other.Write(nodes + "1/properties", "simd_count 4\n");
  EXPECT_TRUE(absl::IsUnavailable(run().status())) << "the error of one is that of all";
}

}  // namespace
}  // namespace cachewarm::gpu
