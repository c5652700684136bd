// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "lib/gpu/platform/cuda/sources.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::gpu {
namespace {

using ::testing::HasSubstr;

constexpr char kNone[] = "libno-such-driver.so.1";

class CudaProbeTest : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv("FAKE_GPU_SCENARIO"); }

  absl::StatusOr<Devices> Ask(const std::string& scenario, const std::string& nvml = FAKE_NVML,
                              const std::string& cuda = kNone) {
    ::setenv("FAKE_GPU_SCENARIO", scenario.c_str(), 1);
    return MakeCudaProbe(nvml, cuda)->Run();
  }
};

TEST_F(CudaProbeTest, NvmlReportsEveryDevice) {
  const auto devices = Ask("h100x8");
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->source, "nvml");
  EXPECT_EQ(devices->driver_version, "570.86.15");
  ASSERT_EQ(devices->devices.size(), 8U);
  EXPECT_EQ(devices->devices[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(devices->devices[0].sm_major, 9);
  EXPECT_EQ(devices->devices[0].memory_bytes, uint64_t{81'559} << 20U);
  EXPECT_EQ(devices->devices[0].mig_profile, "");
}

TEST_F(CudaProbeTest, MigInstancesReplaceTheirGpu) {
  const auto devices = Ask("mig");
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->devices.size(), 4U);
  EXPECT_EQ(devices->devices[3].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(devices->devices[3].mig_profile, "1g.10gb");
  EXPECT_EQ(devices->devices[3].sm_major, 9);
}

TEST_F(CudaProbeTest, ReportsTheModelsOfTheField) {
  struct Case {
    const char* scenario;
    const char* name;
    int major;
    int minor;
    uint64_t mebibytes;
    size_t count;
    const char* mig;
  };
  const Case cases[] = {
      {"h100x8", "NVIDIA H100 80GB HBM3", 9, 0, 81'559, 8, ""},
      {"h200x8", "NVIDIA H200", 9, 0, 143'771, 8, ""},
      {"b200x8", "NVIDIA B200", 10, 0, 183'359, 8, ""},
      {"l4", "NVIDIA L4", 8, 9, 23'034, 1, ""},
      {"a100-mig", "NVIDIA A100-SXM4-40GB", 8, 0, 40'960 / 8, 4, "1g.5gb"},
  };
  for (const Case& each : cases) {
    const auto devices = Ask(each.scenario);
    ASSERT_TRUE(devices.ok()) << devices.status();
    ASSERT_EQ(devices->devices.size(), each.count) << each.scenario;
    const Device& device = devices->devices.back();
    EXPECT_EQ(device.name, each.name);
    EXPECT_EQ(device.sm_major, each.major) << each.scenario;
    EXPECT_EQ(device.sm_minor, each.minor) << each.scenario;
    EXPECT_EQ(device.memory_bytes, each.mebibytes << 20U) << each.scenario;
    EXPECT_EQ(device.mig_profile, each.mig);
  }
}

TEST_F(CudaProbeTest, FindsTheLibraryBelowADriverRoot) {
  for (const char* directory : {"usr/lib/x86_64-linux-gnu", "usr/lib64", "lib64", ""}) {
    const TempDir empty;
    const TempDir driver;
    const std::filesystem::path path = std::filesystem::path(driver.path()) / directory;
    std::filesystem::create_directories(path);
    std::filesystem::copy(FAKE_NVML, path / "libnvidia-ml.so.1");
    ::setenv("FAKE_GPU_SCENARIO", "l4", 1);
    const auto devices = MakeCudaProbe({empty.path(), driver.path()})->Run();
    ASSERT_TRUE(devices.ok()) << devices.status();
    ASSERT_EQ(devices->devices.size(), 1U) << directory;
    EXPECT_EQ(devices->devices[0].name, "NVIDIA L4");
  }
}

TEST(DriverLibraryPaths, SystemLibraryComesFirst) {
  const auto paths = DriverLibraryPaths("libx.so", {"/run/nvidia/driver", "/opt/gpu"});
  EXPECT_EQ(paths.front(), "libx.so");
  EXPECT_EQ(paths.at(1), "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libx.so");
  EXPECT_EQ(paths.back(), "/opt/gpu/libx.so");
  EXPECT_EQ(DriverLibraryPaths("libx.so", {}), std::vector<std::string>{"libx.so"});
}

TEST_F(CudaProbeTest, MigGpuWithoutInstancesIsNotReported) {
  const auto devices = Ask("mig-empty");
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_TRUE(devices->devices.empty());
}

TEST_F(CudaProbeTest, ToleratesUnknownMemory) {
  const auto devices = Ask("memory-fails");
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->devices.at(0).memory_bytes, 0U);
}

TEST_F(CudaProbeTest, ReportsNoDeviceWithoutLibraries) {
  const auto devices = Ask("", kNone, kNone);
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->source, "none");
  EXPECT_TRUE(devices->devices.empty());
}

TEST_F(CudaProbeTest, ReportsNoDeviceWithoutDriver) {
  const auto devices = Ask("no-driver");
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->source, "none");
}

TEST_F(CudaProbeTest, ReportsDriverWithoutDevices) {
  const auto devices = Ask("none");
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->source, "nvml");
  EXPECT_TRUE(devices->devices.empty());
}

TEST_F(CudaProbeTest, FailingDriverIsRetryable) {
  for (const char* scenario :
       {"init-fails", "count-fails", "gpu-lost", "name-fails", "capability-fails", "absurd"}) {
    const absl::Status status = Ask(scenario).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << scenario << ": " << status;
  }
  EXPECT_THAT(std::string(Ask("gpu-lost").status().message()), HasSubstr("GPU is lost"));
}

TEST_F(CudaProbeTest, LibraryWithoutSymbolsIsAnError) {
  EXPECT_TRUE(absl::IsUnavailable(Ask("", FAKE_EMPTY).status()));
  EXPECT_TRUE(absl::IsUnavailable(Ask("", kNone, FAKE_EMPTY).status()));
}

TEST_F(CudaProbeTest, FallsBackToCudaDriver) {
  const auto devices = Ask("h200", kNone, FAKE_CUDA);
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_EQ(devices->source, "cuda");
  EXPECT_EQ(devices->driver_version, "");
  ASSERT_EQ(devices->devices.size(), 2U);
  EXPECT_EQ(devices->devices[1].name, "NVIDIA H200");
  EXPECT_EQ(devices->devices[1].sm_major, 9);
  EXPECT_EQ(devices->devices[1].sm_minor, 0);
  EXPECT_EQ(devices->devices[1].memory_bytes, 150'000'000'000U);
}

TEST_F(CudaProbeTest, CudaStubReportsNoDevice) {
  for (const char* scenario : {"stub", "no-device"}) {
    const auto devices = Ask(scenario, kNone, FAKE_CUDA);
    ASSERT_TRUE(devices.ok()) << devices.status();
    EXPECT_EQ(devices->source, "none") << scenario;
  }
}

TEST_F(CudaProbeTest, ReportsCudaDriverErrors) {
  for (const char* scenario : {"init-fails", "count-fails", "get-fails", "name-fails",
                               "attribute-fails", "absurd", "silent"}) {
    EXPECT_TRUE(absl::IsUnavailable(Ask(scenario, kNone, FAKE_CUDA).status())) << scenario;
  }
  EXPECT_THAT(std::string(Ask("silent", kNone, FAKE_CUDA).status().message()),
              HasSubstr("unknown error"));
}

TEST_F(CudaProbeTest, ProbesThisMachine) {
  // Must not fail with or without a GPU. The devices are printed for the reader.
  const auto devices = MakeCudaProbe()->Run();
  ASSERT_TRUE(devices.ok()) << devices.status();
  std::printf("source %s, driver %s, devices %zu\n", devices->source.c_str(),
              devices->driver_version.c_str(), devices->devices.size());
  for (const Device& device : devices->devices) {
    std::printf("  %s sm_%d%d %llu bytes %s\n", device.name.c_str(), device.sm_major,
                device.sm_minor, static_cast<unsigned long long>(device.memory_bytes),
                device.mig_profile.c_str());
    EXPECT_FALSE(device.name.empty());
    EXPECT_GT(device.sm_major, 0);
  }
}

TEST(EmptyProbe, ReportsNoDevice) {
  const auto devices = MakeEmptyProbe()->Run();
  ASSERT_TRUE(devices.ok());
  EXPECT_EQ(devices->source, "none");
  EXPECT_TRUE(devices->devices.empty());
}

TEST(SplitMigName, SplitsOffTheProfile) {
  const std::pair<const char*, std::pair<const char*, const char*>> cases[] = {
      {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", {"NVIDIA H100 80GB HBM3", "1g.10gb"}},
      {"NVIDIA A100-SXM4-40GB MIG 1g.5gb+me", {"NVIDIA A100-SXM4-40GB", "1g.5gb+me"}},
      {"NVIDIA H200", {"NVIDIA H200", ""}},
      {"", {"", ""}},
  };
  for (const auto& [full, expected] : cases) {
    Device device;
    SplitMigName(full, device);
    EXPECT_EQ(device.name, expected.first);
    EXPECT_EQ(device.mig_profile, expected.second);
  }
}

}  // namespace
}  // namespace cachewarm::gpu
