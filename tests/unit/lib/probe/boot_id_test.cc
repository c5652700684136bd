// SPDX-License-Identifier: Apache-2.0
#include "lib/probe/boot_id.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/fakes/temp_dir.h"

namespace cachewarm::probe {
namespace {

TEST(BootId, IsTheIdOfTheKernelAndEmptyWithoutOne) {
  const TempDir proc;
  EXPECT_EQ(BootId(proc.path()), "");
  std::filesystem::create_directories(proc / "sys/kernel/random");
  std::ofstream(proc / "sys/kernel/random/boot_id") << "0c7d5a3e-8f5e-4d0c-9a52-3f6f5b0b2f11\n";
  EXPECT_EQ(BootId(proc.path()), "0c7d5a3e-8f5e-4d0c-9a52-3f6f5b0b2f11");
}

TEST(BootId, StaysTheSameUntilTheMachineStartsAgain) {
  EXPECT_EQ(BootId("/proc").size(), 36U);
  EXPECT_EQ(BootId("/proc"), BootId("/proc"));
}

}  // namespace
}  // namespace cachewarm::probe
