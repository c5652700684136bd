// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/root_space.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

class RootSpaceTest : public ::testing::Test, protected Workbench {
 protected:
  RootSpace Measured(RootSpaceOptions options) {
    options.measure = seconds(300);
    options.retry = seconds(15);
    RootSpace space(context_, options);
    space.Measure(false);
    return space;
  }

  bundle::WorkerPool workers_{1, 1};
  const Context context_ = ContextWith(workers_);
  WatchedTrees watched_{context_};
  const Evictions evictions_{context_, watched_, seconds(300)};
};

TEST_F(RootSpaceTest, LimitIsTheByteLimitOrElseAShareOfTheDisk) {
  const int64_t total = fs::MeasureSpace(root_.dir())->total_bytes;
  EXPECT_EQ(Measured({.disk = {.limit = 50}}).Limits(3).limit_bytes, total / 100 * 50);
  const RootSpace space = Measured({.limit_bytes = 5, .disk = {.limit = 50}});
  EXPECT_EQ(space.Limits(3).limit_bytes, 5);
  EXPECT_EQ(space.Limits(3).used_bytes, 3);
  EXPECT_EQ(space.Report(evictions_).limit_bytes, 5);
  EXPECT_GT(space.Report(evictions_).free_bytes, 0);
}

TEST_F(RootSpaceTest, ReservedSpaceCountsAsUsed) {
  const RootSpace space = Measured({});
  const DiskLimits whole = space.Limits(100);
  const DiskLimits limits = space.Limits(100, {.bytes = 10, .inodes = 2});
  EXPECT_EQ(limits.used_bytes, 110);
  EXPECT_EQ(limits.free_bytes, whole.free_bytes - 10);
  EXPECT_EQ(limits.free_inodes, whole.free_inodes - 2);
}

TEST_F(RootSpaceTest, UnusableRootIsMeasuredAgainSooner) {
  RootSpace space = Measured({});
  EXPECT_TRUE(space.Report(evictions_).writable);
  space.SetUnusable("the disk failed");
  clock_.Advance(seconds(14));
  space.Measure(false);
  EXPECT_FALSE(space.Report(evictions_).writable);
  EXPECT_EQ(space.Report(evictions_).message, "the disk failed");
  clock_.Advance(seconds(1));
  space.Measure(false);
  EXPECT_TRUE(space.Report(evictions_).writable);
  EXPECT_EQ(space.Report(evictions_).message, "");
}

TEST_F(RootSpaceTest, ForceMeasuresAtOnce) {
  RootSpace space = Measured({});
  space.SetUnusable("the disk failed");
  space.Measure(true);
  EXPECT_TRUE(space.Report(evictions_).writable);
}

}  // namespace
}  // namespace cachewarm::agent
