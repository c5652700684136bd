// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "tests/unit/agent/scratch.h"

namespace cachewarm::agent {
namespace {

const std::string kTree(32, 'a');

ScrubRecord Record() {
  return {.at = WallTime(std::chrono::seconds(1'700'000'000)),
          .entries = 20'000,
          .checked = 12'345,
          .modified_by_engine = {{.path = "flashinfer/x",
                                  .bytes = 5,
                                  .inode = 7,
                                  .mtime_ns = 1'700'000'000'123'456'789,
                                  .ctime_ns = 1'700'000'001'000'000'001}}};
}

TEST(ScrubRecord, SurvivesARoundTrip) {
  const Root root;
  EXPECT_TRUE(absl::IsNotFound(ReadScrubRecord(root.dir(), kTree).status()));
  ASSERT_TRUE(WriteScrubRecord(root.dir(), kTree, Record()).ok());
  const auto record = ReadScrubRecord(root.dir(), kTree);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(*record, Record());
}

TEST(ScrubRecord, IsRejectedIfMalformed) {
  for (const std::string text :
       {"", "[]", "{\"checked\": -1}", "{\"checked\": \"all\"}", "{\"modifiedByEngine\": [{}]}"}) {
    const Root root;
    root.Write(ScrubRecordPath(kTree), text);
    EXPECT_FALSE(ReadScrubRecord(root.dir(), kTree).ok()) << text;
  }
}

TEST(ScrubRecord, IsRemovedWithItsTree) {
  const Root root;
  ASSERT_TRUE(WriteScrubRecord(root.dir(), kTree, Record()).ok());
  ASSERT_TRUE(RepairJournal(root.dir(), WallTime{}).ok());
  EXPECT_FALSE(root.Exists(ScrubRecordPath(kTree)));
}

}  // namespace
}  // namespace cachewarm::agent
