// SPDX-License-Identifier: Apache-2.0
#include "lib/probe/driver_state.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/fakes/temp_dir.h"

namespace cachewarm::probe {
namespace {

namespace stdfs = std::filesystem;

class DriverStateTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const stdfs::path file = stdfs::path(temp_.path()) / path;
    stdfs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string State() { return DriverState(temp_.path(), {temp_ / "libnvidia-ml.so.1"}); }

  TempDir temp_;
};

TEST_F(DriverStateTest, ChangesWithEverySourceAndOnlyThen) {
  std::string last = State();
  EXPECT_EQ(State(), last);
  for (const char* path :
       {"proc/driver/nvidia/version", "sys/module/nvidia/version", "sys/module/amdgpu/version",
        "proc/driver/nvidia/gpus/0000:1b:00.0/information", "dev/nvidia0", "dev/kfd",
        "dev/dri/renderD128", "sys/class/kfd/kfd/topology/nodes/1/name", "libnvidia-ml.so.1"}) {
    Write(path, "570.86.15\n");
    const std::string state = State();
    EXPECT_NE(state, last) << path;
    EXPECT_EQ(State(), state) << path;
    last = state;
  }
  Write("proc/driver/nvidia/version", "580.65.06\n");
  EXPECT_NE(State(), last);
  last = State();
  Write("dev/sda", "");
  EXPECT_EQ(State(), last) << "other devices do not count";
}

TEST_F(DriverStateTest, ReplacedLibraryChangesTheState) {
  Write("libnvidia-ml.so.1", "one");
  const std::string before = State();
  Write("next", "two");
  stdfs::rename(temp_ / "next", temp_ / "libnvidia-ml.so.1");
  EXPECT_NE(State(), before);
}

TEST_F(DriverStateTest, LongFileIsBounded) {
  Write("proc/driver/nvidia/version", std::string(1 << 20, 'x'));
  EXPECT_LT(State().size(), size_t{10'000});
}

TEST_F(DriverStateTest, KernelListsItsGpus) {
  EXPECT_EQ(KernelNvidiaGpus(temp_ / "proc"), 0);
  Write("proc/driver/nvidia/gpus/0000:1b:00.0/information", "Model: NVIDIA H200\n");
  Write("proc/driver/nvidia/gpus/0000:43:00.0/information", "Model: NVIDIA H200\n");
  EXPECT_EQ(KernelNvidiaGpus(temp_ / "proc"), 2);
}

}  // namespace
}  // namespace cachewarm::probe
