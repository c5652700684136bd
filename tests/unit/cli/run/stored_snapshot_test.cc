// SPDX-License-Identifier: Apache-2.0
#include "cli/run/stored_snapshot.h"

#include "gtest/gtest.h"
#include "lib/fs/file.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::cli {
namespace {

const TreeSnapshot kSnapshot = {{"inductor/ab/c\"1\".py", {10, 1'700'000'000'123'456'789}},
                                {"triton/K/k.cubin", {0, -1}}};

TEST(StoredSnapshot, IsReadAsItWasWritten) {
  EXPECT_EQ(ParseSnapshot(WriteSnapshot(kSnapshot)).value(), kSnapshot);
  EXPECT_EQ(ParseSnapshot(WriteSnapshot({})).value(), TreeSnapshot());
  const TempDir temp;
  const fs::Dir dir = temp.Open();
  EXPECT_EQ(ReadStoredSnapshot(dir), TreeSnapshot());
  ASSERT_TRUE(StoreSnapshot(dir, kSnapshot).ok());
  EXPECT_EQ(ReadStoredSnapshot(dir), kSnapshot);
  ASSERT_TRUE(StoreSnapshot(dir, {}).ok());
  EXPECT_EQ(ReadStoredSnapshot(dir), TreeSnapshot());
}

TEST(StoredSnapshot, OtherTextIsRejected) {
  for (const char* text :
       {"", "{", "7", "[]", "{}", R"({"version": 2, "files": {}})", R"({"version": 1})",
        R"({"version": 1, "files": []})", R"({"version": 1, "files": {"a": 7}})",
        R"({"version": 1, "files": {"a": [1]}})", R"({"version": 1, "files": {"a": [1, 2, 3]}})",
        R"({"version": 1, "files": {"a": ["1", 2]}})",
        R"({"version": 1, "files": {"a": [1, 2.5]}})"}) {
    EXPECT_FALSE(ParseSnapshot(text).ok()) << text;
    const TempDir temp;
    temp.Write(".cachewarm/snapshot.json", text);
    EXPECT_EQ(ReadStoredSnapshot(temp.Open()), TreeSnapshot()) << text;
  }
}

TEST(StoredSnapshot, LoadKeepsTheOlderStateOfAFile) {
  EXPECT_EQ(KeepOlder({{"a", {1, 1}}, {"removed", {1, 1}}}, {{"a", {2, 2}}, {"new", {3, 3}}}),
            (TreeSnapshot{{"a", {1, 1}}, {"new", {3, 3}}}));
}

}  // namespace
}  // namespace cachewarm::cli
