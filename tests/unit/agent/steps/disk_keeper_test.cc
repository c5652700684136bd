// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/evicting/disk_keeper.h"

#include <gtest/gtest.h>

#include <string>

#include "agent/tree/root_layout.h"
#include "tests/fakes/await.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {
namespace {

class DiskKeeperTest : public ::testing::Test, protected Workbench {
 protected:
  void AddTree(const std::string& generation, const DiskAmount& recorded) {
    inventory_.generations[generation].usage = recorded;
  }

  Inventory inventory_;
  bundle::WorkerPool workers_{1, 1};
  const Context context_ = ContextWith(workers_);
  DiskKeeper keeper_{context_, Duration(600'000)};
};

TEST_F(DiskKeeperTest, UsageOfATreeThatCannotBeReadIsKept) {
  constexpr DiskAmount kRecorded{.bytes = 123'456, .inodes = 7};
  AddTree("unreadable", kRecorded);
  root_.Write(GenerationPath("unreadable"), "a file instead of a directory");
  AddTree("whole", kRecorded);
  root_.Write(GenerationPath("whole") + "/inductor/x.py", "x");
  EXPECT_TRUE(fakes::Await([&] {
    keeper_.Update(inventory_);
    return keeper_.usage().at("whole").inodes == 2;
  }));
  EXPECT_EQ(keeper_.usage().at("unreadable").bytes, kRecorded.bytes);
  EXPECT_EQ(keeper_.usage().at("unreadable").inodes, kRecorded.inodes);
}

TEST_F(DiskKeeperTest, TreeThatCannotBeReadIsAnError) {
  root_.Write(GenerationPath("unreadable"), "a file instead of a directory");
  EXPECT_FALSE(MeasureUsage(root_.dir(), "unreadable").ok());
}

}  // namespace
}  // namespace cachewarm::agent
