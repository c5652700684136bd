// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/unavailable_watcher.h"

#include <gtest/gtest.h>

#include <memory>

namespace cachewarm::agent {
namespace {

TEST(UnavailableWatcher, HasIncompleteRecordsAndCountsNothing) {
  const std::unique_ptr<Watcher> watcher = MakeUnavailableWatcher();
  EXPECT_TRUE(watcher->AddTree({.generation = "tree", .warmup_uid = "uid"}).ok());
  EXPECT_FALSE(watcher->Read("uid", "image", {}, WallTime::max()).complete);
  EXPECT_FALSE(watcher->ReadTree("tree", {}, WallTime::max()).complete);
  watcher->BeginOwnReads("tree").Opening("file");
  watcher->RemoveTree("tree");
  EXPECT_EQ(watcher->directories(), 0);
  EXPECT_EQ(watcher->events(), 0);
  EXPECT_EQ(watcher->overflows(), 0);
}

}  // namespace
}  // namespace cachewarm::agent
