// SPDX-License-Identifier: Apache-2.0
#include "agent/remote/remote_entries.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "lib/base/digest.h"
#include "lib/fs/file.h"
#include "tests/unit/agent/remote/remote_fixture.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;

class RemoteEntriesTest : public RemoteFixture {
 protected:
  RemoteEntries Open(const RemoteEntryLimits& limits) {
    auto entries = RemoteEntries::Open(root_, kTree, limits);
    EXPECT_TRUE(entries.ok()) << entries.status();
    return *std::move(entries);
  }
  RemoteEntries Open() { return Open(Limits()); }
  std::string FileOf(std::string_view key) const {
    return Folder() + "/" + DigestOf(key).hex() + ".value";
  }
  static std::string Read(const RemoteEntries& entries, std::string_view key) {
    const auto found = entries.Find(key);
    return found.ok() ? *fs::ReadAll(found->file, 1 << 20) : "(none)";
  }
};

TEST_F(RemoteEntriesTest, ReturnsTheStoredBytes) {
  RemoteEntries entries = Open();
  const std::string value("\0\xff\r\n", 4);
  EXPECT_TRUE(absl::IsNotFound(entries.Find("k").status()));
  ASSERT_TRUE(entries.Store("k", value).ok());
  EXPECT_EQ(Read(entries, "k"), value);
  EXPECT_TRUE(entries.Contains("k"));
  EXPECT_FALSE(entries.Contains("K"));
  ASSERT_TRUE(entries.Store("k", "").ok());
  EXPECT_EQ(Read(entries, "k"), "");
}

TEST_F(RemoteEntriesTest, FindsEntriesOfAnEarlierProcessAndOfABundle) {
  ASSERT_TRUE(Open().Store("k", "v").ok());
  EXPECT_EQ(Read(Open(), "k"), "v");
}

TEST_F(RemoteEntriesTest, FilesAreReadOnlyAndNamedByTheHashOfTheKey) {
  RemoteEntries entries = Open();
  ASSERT_TRUE(entries.Store("../../etc/passwd", "v").ok());
  EXPECT_TRUE(stdfs::exists(FileOf("../../etc/passwd")));
  EXPECT_EQ(stdfs::status(FileOf("../../etc/passwd")).permissions(), stdfs::perms(0444));
  EXPECT_TRUE(stdfs::is_empty(folder_ / std::string(kRemoteStaging)));
}

TEST_F(RemoteEntriesTest, ReadsTheCompileTimeAtTheEndOfAValue) {
  const std::pair<std::string, int64_t> kCases[] = {
      {kValue, 1500},
      {R"({"data": ")" + std::string(100'000, 'A') + R"(", "time_taken_ms": 86400000})", 86400000},
      {R"({"time_taken_ms": 5, "data": "x"})", 0},
      {R"({"data": "x", "time_taken_ms": 86400001})", 0},
      {R"({"data": "x", "time_taken_ms": -5})", 0},
      {R"({"data": "x", "time_taken_ms": 99999999999999999999})", 0},
      {R"({"data": "x", "time_taken_ms": })", 0},
      {R"({"data": "x", "time_taken_ms": 7)", 0},
      {R"("time_taken_ms": )", 0},
      {"", 0},
  };
  RemoteEntries entries = Open();
  for (const auto& [value, expected] : kCases) {
    ASSERT_TRUE(entries.Store("k", value).ok());
    EXPECT_EQ(entries.Find("k")->compile_ms, expected) << value.substr(0, 60);
  }
}

TEST_F(RemoteEntriesTest, StoresNothingBeyondALimit) {
  RemoteEntryLimits limits = Limits();
  limits.value_bytes_max = 10;
  limits.entries_max = 3;
  limits.bytes_max = 25;
  RemoteEntries entries = Open(limits);
  EXPECT_TRUE(absl::IsResourceExhausted(entries.Store("long", std::string(11, 'x'))));
  EXPECT_TRUE(entries.Store("a", std::string(10, 'x')).ok());
  EXPECT_TRUE(entries.Store("b", std::string(10, 'x')).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(entries.Store("c", std::string(6, 'x'))));
  EXPECT_TRUE(entries.Store("c", std::string(5, 'x')).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(entries.Store("d", "")));
  EXPECT_FALSE(entries.Contains("d"));
  // The entries on disk count after a restart too.
  EXPECT_TRUE(absl::IsResourceExhausted(Open(limits).Store("d", "")));
}

TEST_F(RemoteEntriesTest, AReplacedValueTakesNoFurtherRoom) {
  RemoteEntryLimits limits = Limits();
  limits.entries_max = 2;
  limits.bytes_max = 20;
  RemoteEntries entries = Open(limits);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(entries.Store("k", std::string(8, 'x')).ok()) << i;
  }
  EXPECT_TRUE(entries.Store("other", std::string(8, 'x')).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(entries.Store("third", "")));
}

TEST_F(RemoteEntriesTest, AValueIsReplacedAtTheLimits) {
  RemoteEntryLimits limits = Limits();
  limits.entries_max = 1;
  limits.bytes_max = 10;
  RemoteEntries entries = Open(limits);
  ASSERT_TRUE(entries.Store("k", std::string(10, 'x')).ok());
  ASSERT_TRUE(entries.Store("k", std::string(10, 'y')).ok());
  EXPECT_EQ(Read(entries, "k"), std::string(10, 'y'));
}

TEST_F(RemoteEntriesTest, AKeyHasNoValueAfterAnErrorAndItsRoomIsFree) {
  RemoteEntryLimits limits = Limits();
  limits.entries_max = 1;
  limits.bytes_max = 10;
  RemoteEntries entries = Open(limits);
  ASSERT_TRUE(entries.Store("k", "old").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(entries.Store("k", std::string(11, 'x'))));
  EXPECT_EQ(Read(entries, "k"), "(none)");
  ASSERT_TRUE(entries.Store("other", std::string(10, 'x')).ok());
  entries.Remove("other");
  entries.Remove("other");
  EXPECT_EQ(Read(entries, "other"), "(none)");
  EXPECT_TRUE(entries.Store("k", std::string(10, 'x')).ok());
}

TEST_F(RemoteEntriesTest, StoresNothingOnAFullDisk) {
  RemoteEntryLimits limits = Limits();
  limits.free_bytes_min = 1LL << 60U;
  EXPECT_TRUE(absl::IsResourceExhausted(Open(limits).Store("k", "v")));
}

TEST_F(RemoteEntriesTest, ServesNoFileLargerThanAValue) {
  RemoteEntryLimits limits = Limits();
  limits.value_bytes_max = 10;
  const RemoteEntries entries = Open(limits);
  folder_.Write(std::string(kTree) + "/redis/" + DigestOf("k").hex() + ".value",
                std::string(11, 'x'));
  EXPECT_TRUE(absl::IsNotFound(entries.Find("k").status()));
  EXPECT_FALSE(entries.Contains("k"));
}

TEST_F(RemoteEntriesTest, FollowsNoLinkThatAPodMade) {
  RemoteEntries entries = Open();
  folder_.Write("secret", "secret");
  stdfs::create_symlink(folder_ / "secret", FileOf("k"));
  EXPECT_FALSE(entries.Find("k").ok());
  EXPECT_FALSE(entries.Contains("k"));
  ASSERT_TRUE(entries.Store("k", "v").ok());
  EXPECT_EQ(Read(entries, "k"), "v");
  EXPECT_EQ(*fs::ReadNamedFile(folder_ / "secret", 100), "secret");
  stdfs::remove_all(Folder());
  stdfs::create_directory(folder_ / "elsewhere");
  stdfs::create_directory_symlink(folder_ / "elsewhere", Folder());
  EXPECT_FALSE(entries.Store("k", "v").ok());
  EXPECT_TRUE(stdfs::is_empty(folder_ / "elsewhere"));
  EXPECT_FALSE(RemoteEntries::Open(root_, kTree, Limits()).ok());
}

TEST_F(RemoteEntriesTest, WaitsForNoFifoThatAPodMade) {
  const RemoteEntries entries = Open();
  ASSERT_EQ(::mkfifo(FileOf("k").c_str(), 0666), 0);
  EXPECT_FALSE(entries.Find("k").ok());
}

TEST_F(RemoteEntriesTest, OverwritesThePartThatAKilledAgentLeft) {
  RemoteEntries entries = Open();
  folder_.Write(std::string(kRemoteStaging) + "/" + DigestOf("k").hex() + ".value", "half");
  ASSERT_TRUE(entries.Store("k", "whole").ok());
  EXPECT_EQ(Read(entries, "k"), "whole");
}

}  // namespace
}  // namespace cachewarm::agent
