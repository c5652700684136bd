// SPDX-License-Identifier: Apache-2.0
#include "lib/fs/file.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <stop_token>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "lib/fs/tree.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::fs {
namespace {

int64_t NamesIn(const Dir& dir) {
  int64_t names = 0;
  EXPECT_TRUE(Walk(dir, "", {}, [&names](const WalkEntry&) {
                ++names;
                return WalkNext::kContinue;
              }).ok());
  return names;
}

TEST(WriteFileAtomic, ReplacesTheWholeFileAndItsMode) {
  for (const Durable durable : {Durable::kNow, Durable::kOnceAllSynced}) {
    const TempDir temp;
    const Dir dir = temp.Open();
    ASSERT_TRUE(WriteFileAtomic(dir, "f", std::string(100'000, 'a'), 0600, durable).ok());
    ASSERT_TRUE(WriteFileAtomic(dir, "f", "short", 0644, durable).ok());
    EXPECT_EQ(*ReadFile(dir, "f", 1000), "short");
    EXPECT_EQ(dir.Stat("f")->mode, 0644U);
    EXPECT_EQ(NamesIn(dir), 1);
  }
}

TEST(SyncFileInSteps, EndsSoonAfterAStopRequest) {
  const TempDir temp;
  const Dir dir = temp.Open();
  constexpr int64_t kBytes = 20LL << 20;
  const Fd file = *dir.CreateFile("f", 0644);
  ASSERT_TRUE(WriteAll(file, std::string(kBytes, 'x')).ok());
  EXPECT_TRUE(SyncFileInSteps(file, kBytes, {}).ok());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(SyncFileInSteps(file, kBytes, stop.get_token())));
}

TEST(WriteFileAtomic, KeepsOldFileIfTheDiskIsFull) {
  const TempDir temp;
  const Dir dir = temp.Open();
  ASSERT_TRUE(WriteFileAtomic(dir, "f", "old", 0644).ok());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status written = WriteFileAtomic(dir, "f", std::string(5000, 'n'), 0644);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(written)) << written;
  EXPECT_EQ(*ReadFile(dir, "f", 1000), "old");
  EXPECT_EQ(NamesIn(dir), 1);
}

TEST(WriteFileAtomic, ReadersSeeOnlyCompleteFiles) {
  const TempDir temp;
  const Dir dir = temp.Open();
  ASSERT_TRUE(WriteFileAtomic(dir, "f", std::string(50'000, 'a'), 0644).ok());
  std::jthread writer([&dir](const std::stop_token& stop) {
    for (char c = 'a'; !stop.stop_requested(); c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
      EXPECT_TRUE(WriteFileAtomic(dir, "f", std::string(50'000, c), 0644).ok());
    }
  });
  for (int i = 0; i < 200; ++i) {
    const auto text = ReadFile(dir, "f", 100'000);
    ASSERT_TRUE(text.ok()) << text.status();
    ASSERT_EQ(*text, std::string(50'000, text->front()));
  }
}

TEST(WriteFileAtomic, KilledWriterLeavesOldOrNewFile) {
  const TempDir temp;
  const Dir dir = temp.Open();
  ASSERT_TRUE(WriteFileAtomic(dir, "f", std::string(50'000, 'o'), 0644).ok());
  for (int round = 0; round < 10; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (char c = 'a';; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
        WriteFileAtomic(dir, "f", std::string(50'000, c), 0644).IgnoreError();
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + 3 * round));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const auto text = ReadFile(dir, "f", 100'000);
    ASSERT_TRUE(text.ok()) << text.status();
    ASSERT_EQ(*text, std::string(50'000, text->front()));
  }
}

TEST(ReplaceLink, IsAtomic) {
  const TempDir temp;
  const Dir dir = temp.Open();
  ASSERT_TRUE(dir.MakeDirs("gen/one", 0755).ok());
  ASSERT_TRUE(dir.MakeDirs("gen/two", 0755).ok());
  ASSERT_TRUE(ReplaceLink(dir, "link", "gen/one").ok());
  std::jthread flipper([&dir](const std::stop_token& stop) {
    for (bool one = true; !stop.stop_requested(); one = !one) {
      EXPECT_TRUE(ReplaceLink(dir, "link", one ? "gen/one" : "gen/two").ok());
    }
  });
  for (int i = 0; i < 2000; ++i) {
    const auto target = dir.ReadLink("link");
    ASSERT_TRUE(target.ok()) << target.status();
    ASSERT_TRUE(*target == "gen/one" || *target == "gen/two");
  }
}

TEST(ReplaceLink, ReplacesAFileButNotADirectory) {
  const TempDir temp;
  const Dir dir = temp.Open();
  ASSERT_TRUE(WriteFileAtomic(dir, "f", "x", 0644).ok());
  ASSERT_TRUE(dir.MakeDir("d", 0755).ok());
  EXPECT_TRUE(ReplaceLink(dir, "f", "d").ok());
  EXPECT_EQ(*dir.ReadLink("f"), "d");
  EXPECT_TRUE(absl::IsAlreadyExists(ReplaceLink(dir, "d", "f")));
  EXPECT_EQ(NamesIn(dir), 2);
}

TEST(ReplaceLink, WorksBesideLeftoverOfACrash) {
  const TempDir temp;
  const Dir dir = temp.Open();
  const std::string left = ".tmp-" + std::to_string(::getpid()) + "-0";
  ASSERT_TRUE(WriteFileAtomic(dir, left, "x", 0644).ok());
  EXPECT_TRUE(ReplaceLink(dir, "link", "target").ok());
  EXPECT_TRUE(WriteFileAtomic(dir, "file", "x", 0644).ok());
  EXPECT_TRUE(*dir.Exists(left));
}

TEST(ReadFile, EnforcesMaximumSize) {
  const TempDir temp;
  const Dir dir = temp.Open();
  ASSERT_TRUE(WriteFileAtomic(dir, "f", std::string(1000, 'x'), 0644).ok());
  EXPECT_TRUE(ReadFile(dir, "f", 1000).ok());
  EXPECT_TRUE(absl::IsOutOfRange(ReadFile(dir, "f", 999).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadFile(dir, "g", 999).status()));
}

TEST(ReadAt, ReadsFromOffset) {
  const TempDir temp;
  const Dir dir = temp.Open();
  ASSERT_TRUE(WriteFileAtomic(dir, "f", "0123456789", 0644).ok());
  const auto file = dir.OpenFile("f");
  std::string buffer(4, '\0');
  EXPECT_EQ(*ReadAt(*file, 8, buffer.data(), 4), 2U);
  EXPECT_EQ(buffer.substr(0, 2), "89");
  EXPECT_EQ(*ReadAt(*file, 10, buffer.data(), 4), 0U);
}

TEST(Reflink, ClonesIfTheFileSystemSupportsIt) {
  const TempDir temp;
  const Dir dir = temp.Open();
  ASSERT_TRUE(WriteFileAtomic(dir, "from", std::string(10'000, 'x'), 0644).ok());
  const auto from = dir.OpenFile("from");
  const auto to = dir.CreateFile("to", 0644);
  const auto cloned = Reflink(*from, *to);
  ASSERT_TRUE(cloned.ok()) << cloned.status();
  EXPECT_EQ(*ReadFile(dir, "to", 1 << 20), *cloned ? std::string(10'000, 'x') : "");
}

TEST(SetFileOwner, ChangesTheOwner) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can";
  }
  const TempDir temp;
  const Dir dir = temp.Open();
  const auto file = dir.CreateFile("f", 0644);
  ASSERT_TRUE(SetFileOwner(*file, 1000, static_cast<gid_t>(-1)).ok());
  EXPECT_EQ(dir.Stat("f")->uid, 1000U);
}

}  // namespace
}  // namespace cachewarm::fs
