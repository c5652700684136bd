// SPDX-License-Identifier: Apache-2.0
// The watcher on real files, with real events of the kernel.
#include "agent/evidence/tree_watcher.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "agent/evidence/classify.h"
#include "fmt/format.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::agent {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

namespace stdfs = std::filesystem;

class CountingLog final : public Log {
 public:
  void Write(LogLevel, std::string_view, LogFields) override { ++lines; }
  std::atomic<int> lines = 0;
};

class WatcherTest : public ::testing::Test {
 protected:
  void SetUp() override { Start({}); }

  void Start(const WatcherLimits& limits) {
    watcher_.reset();
    auto started = Watcher::Start(limits, clock_, log_);
    ASSERT_TRUE(started.ok()) << started.status();
    watcher_ = *std::move(started);
  }

  void AddTree(bool fresh = true) {
    ASSERT_TRUE(watcher_
                    ->AddTree({.generation = "g1",
                               .warmup_uid = "w1",
                               .directory = temp_.path(),
                               .run_as = "u1000",
                               .fresh = fresh})
                    .ok());
  }

  void Write(const std::string& path, const std::string& text = "x") {
    std::ofstream(temp_ / path) << text;
  }
  void ReadFile(const std::string& path) {
    std::ifstream file(temp_ / path);
    std::string text;
    file >> text;
  }
  // Writes a temporary file in the same directory and renames it, as Inductor does.
  void MoveIn(const std::string& path) {
    const stdfs::path target = temp_ / path;
    stdfs::create_directories(target.parent_path());
    const stdfs::path staged = target.parent_path() / ".1.2.tmp";
    std::ofstream(staged) << "x";
    stdfs::rename(staged, target);
  }

  EventRecord Everything() {
    return watcher_->Read("w1", clock_.Now() - std::chrono::hours(1), clock_.Now());
  }
  std::set<std::string> PathsOf(FileEventType type) {
    std::set<std::string> paths;
    for (const FileEvent& event : Everything().events) {
      if (event.type == type) {
        paths.insert(event.path);
      }
    }
    return paths;
  }
  Observation Classify() {
    return ClassifyStart(Everything(), {.started_time = clock_.Now(), .ready_time = clock_.Now()},
                         caches::CacheTable::AllPresets());
  }

  TempDir temp_;
  fakes::FakeClock clock_;
  CountingLog log_;
  std::unique_ptr<Watcher> watcher_;
};

TEST_F(WatcherTest, RecordsReadsWritesAndRenames) {
  stdfs::create_directories(temp_ / "inductor/ab");
  Write("inductor/ab/old.py");
  AddTree();
  ReadFile("inductor/ab/old.py");
  Write("inductor/ab/new.so");
  stdfs::rename(temp_ / "inductor/ab/new.so", temp_ / "inductor/ab/moved.so");
  EXPECT_THAT(PathsOf(FileEventType::kOpened),
              UnorderedElementsAre("inductor/ab/old.py", "inductor/ab/new.so"));
  EXPECT_THAT(PathsOf(FileEventType::kRead), UnorderedElementsAre("inductor/ab/old.py"));
  EXPECT_THAT(PathsOf(FileEventType::kCreated), UnorderedElementsAre("inductor/ab/new.so"));
  EXPECT_THAT(PathsOf(FileEventType::kWritten), UnorderedElementsAre("inductor/ab/new.so"));
  EXPECT_THAT(PathsOf(FileEventType::kMovedTo), UnorderedElementsAre("inductor/ab/moved.so"));
  EXPECT_TRUE(Everything().complete);
}

TEST_F(WatcherTest, RecordsMtimeOfWrite) {
  Write("f");
  const timespec old[] = {{.tv_sec = 1000, .tv_nsec = 0}, {.tv_sec = 1000, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (temp_ / "f").c_str(), old, 0), 0);
  AddTree();
  ::close(::open((temp_ / "f").c_str(), O_RDWR | O_CLOEXEC));
  const EventRecord record = Everything();
  const auto written =
      std::find_if(record.events.begin(), record.events.end(),
                   [](const FileEvent& event) { return event.type == FileEventType::kWritten; });
  ASSERT_NE(written, record.events.end());
  EXPECT_EQ(written->mtime, WallTime(std::chrono::seconds(1000)));
}

TEST_F(WatcherTest, IgnoresLocksAndTemporaryFiles) {
  stdfs::create_directories(temp_ / "inductor/locks");
  AddTree();
  Write("inductor/locks/a.lock");
  Write("inductor/.1.2.tmp");
  Write("inductor/tmp.pid_1");
  EXPECT_THAT(Everything().events, IsEmpty());
}

TEST_F(WatcherTest, FindsFilesCreatedBeforeTheirDirectoryIsWatched) {
  AddTree();
  // Created without a pause, so that the kernel reports only the outermost directory.
  MoveIn("inductor/fxgraph/ab/fabc/0011");
  MoveIn("inductor/aotautograd/axyz/2233");
  std::set<std::string> seen = PathsOf(FileEventType::kCreated);
  seen.merge(PathsOf(FileEventType::kMovedTo));
  EXPECT_THAT(seen, UnorderedElementsAre("inductor/fxgraph/ab/fabc/0011",
                                         "inductor/aotautograd/axyz/2233"));
  EXPECT_EQ(Classify().result, api::StartResult::kMiss);
}

TEST_F(WatcherTest, Records5000FilesIn500NewDirectories) {
  AddTree();
  std::vector<std::jthread> engines;
  for (int engine = 0; engine < 2; ++engine) {
    engines.emplace_back([this, engine] {
      for (int i = engine; i < 5000; i += 2) {
        const stdfs::path directory =
            temp_ / fmt::format("inductor/fxgraph/{:02}/f{}", i % 50, i % 500);
        stdfs::create_directories(directory);
        const stdfs::path staged = directory / fmt::format(".{}.tmp", i);
        std::ofstream(staged) << "x";
        stdfs::rename(staged, directory / fmt::format("{}", i));
      }
    });
  }
  engines.clear();
  std::set<std::string> seen = PathsOf(FileEventType::kCreated);
  seen.merge(PathsOf(FileEventType::kMovedTo));
  EXPECT_TRUE(Everything().complete);
  EXPECT_EQ(seen.size(), 5000U);
  EXPECT_EQ(Classify().entries_written, 5000);
}

TEST_F(WatcherTest, RecordsRenamedDirectory) {
  stdfs::create_directories(temp_ / "deepgemm/cache");
  AddTree();
  stdfs::create_directories(temp_ / "deepgemm/tmp/uuid/deep");
  Write("deepgemm/tmp/uuid/kernel.cubin");
  stdfs::rename(temp_ / "deepgemm/tmp/uuid", temp_ / "deepgemm/cache/kernel.a");
  EXPECT_THAT(PathsOf(FileEventType::kDirectoryIn),
              Contains("deepgemm/cache/kernel.a/kernel.cubin"));
  EXPECT_EQ(Classify().result, api::StartResult::kMiss);
  // The directory is watched under its new name.
  ReadFile("deepgemm/cache/kernel.a/kernel.cubin");
  EXPECT_THAT(PathsOf(FileEventType::kRead), Contains("deepgemm/cache/kernel.a/kernel.cubin"));
  Write("deepgemm/cache/kernel.a/deep/x");
  EXPECT_THAT(PathsOf(FileEventType::kCreated), Contains("deepgemm/cache/kernel.a/deep/x"));
}

TEST_F(WatcherTest, HitRaisesOnlyReads) {
  MoveIn("inductor/fxgraph/ab/fabc/0011");
  MoveIn("inductor/aotautograd/axyz/2233");
  MoveIn("inductor/cd/ccd.main.so");
  AddTree();
  ReadFile("inductor/aotautograd/axyz/2233");
  ReadFile("inductor/fxgraph/ab/fabc/0011");
  ReadFile("inductor/cd/ccd.main.so");
  const Observation seen = Classify();
  EXPECT_EQ(seen.result, api::StartResult::kHit);
  EXPECT_EQ(seen.entries_opened, 2);
}

TEST_F(WatcherTest, OwnReadsAreNotRecorded) {
  MoveIn("inductor/fxgraph/ab/fabc/0011");
  MoveIn("inductor/fxgraph/ab/fabc/0022");
  AddTree();
  {
    OwnReads reads = watcher_->BeginOwnReads("g1");
    for (const char* path : {"inductor/fxgraph/ab/fabc/0011", "inductor/fxgraph/ab/fabc/0022"}) {
      reads.Opening(path);
      ReadFile(path);
    }
  }
  ReadFile("inductor/fxgraph/ab/fabc/0022");
  const std::set<std::string> read = PathsOf(FileEventType::kRead);
  EXPECT_THAT(read, Not(Contains("inductor/fxgraph/ab/fabc/0011")));
  EXPECT_THAT(PathsOf(FileEventType::kOpened), Not(Contains("inductor/fxgraph/ab/fabc/0011")));
}

TEST_F(WatcherTest, EngineReadAfterOwnReadIsRecorded) {
  MoveIn("inductor/fxgraph/ab/fabc/0011");
  AddTree();
  {
    OwnReads reads = watcher_->BeginOwnReads("g1");
    reads.Opening("inductor/fxgraph/ab/fabc/0011");
    ReadFile("inductor/fxgraph/ab/fabc/0011");
  }
  EXPECT_THAT(Everything().events, IsEmpty());
  ReadFile("inductor/fxgraph/ab/fabc/0011");
  EXPECT_THAT(PathsOf(FileEventType::kRead), Contains("inductor/fxgraph/ab/fabc/0011"));
}

TEST_F(WatcherTest, WindowSelectsEventsByTime) {
  MoveIn("a/b");
  MoveIn("a/c");
  AddTree();
  ReadFile("a/b");
  Everything();  // reads the kernel's queue at this time
  clock_.Advance(std::chrono::minutes(1));
  ReadFile("a/c");
  const EventRecord late = watcher_->Read("w1", clock_.Now() - Duration(1000), clock_.Now());
  ASSERT_FALSE(late.events.empty());
  for (const FileEvent& event : late.events) {
    EXPECT_EQ(event.path, "a/c");
  }
}

TEST_F(WatcherTest, ExistingTreeIsIncompleteBeforeItsWatch) {
  AddTree(/*fresh=*/false);
  EXPECT_FALSE(watcher_->Read("w1", clock_.Now() - Duration(1), clock_.Now()).complete);
  EXPECT_TRUE(watcher_->Read("w1", clock_.Now(), clock_.Now()).complete);
}

TEST_F(WatcherTest, SelectsTreesByWarmupRunAsAndGeneration) {
  AddTree();
  TempDir other;
  ASSERT_TRUE(watcher_
                  ->AddTree({.generation = "g2",
                             .warmup_uid = "w1",
                             .directory = other.path(),
                             .run_as = "image",
                             .fresh = true})
                  .ok());
  Write("one");
  std::ofstream(other / "two") << "x";
  const WallTime now = clock_.Now();
  const auto paths = [](const EventRecord& record) {
    std::set<std::string> out;
    for (const FileEvent& event : record.events) {
      out.insert(event.path);
    }
    return out;
  };
  EXPECT_THAT(paths(watcher_->Read("w1", now, now)), UnorderedElementsAre("one", "two"));
  EXPECT_THAT(paths(watcher_->Read("w1", "u1000", now, now)), UnorderedElementsAre("one"));
  EXPECT_THAT(paths(watcher_->ReadTree("g2", now, now)), UnorderedElementsAre("two"));
  EXPECT_FALSE(watcher_->Read("w2", now, now).complete);
  EXPECT_FALSE(watcher_->ReadTree("g3", now, now).complete);
}

TEST_F(WatcherTest, RemovedTreeCanBeAddedAgain) {
  stdfs::create_directories(temp_ / "a/b/c");
  AddTree();
  EXPECT_EQ(watcher_->directories(), 4);
  Write("a/b/f");
  Everything();
  EXPECT_GT(watcher_->events(), 0);
  watcher_->RemoveTree("g1");
  watcher_->RemoveTree("g1");
  EXPECT_EQ(watcher_->directories(), 0);
  EXPECT_EQ(watcher_->events(), 0);
  EXPECT_FALSE(Everything().complete);
  AddTree();
  Write("a/b/g");
  EXPECT_THAT(PathsOf(FileEventType::kCreated), UnorderedElementsAre("a/b/g"));
}

TEST_F(WatcherTest, RemovedDirectoriesAreForgotten) {
  stdfs::create_directories(temp_ / "a/b/c");
  AddTree();
  stdfs::remove_all(temp_ / "a");
  Everything();
  EXPECT_EQ(watcher_->directories(), 1);
}

TEST_F(WatcherTest, AddingTreeTwiceHasNoEffect) {
  AddTree();
  AddTree();
  EXPECT_EQ(watcher_->directories(), 1);
}

TEST_F(WatcherTest, MissingTreeIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(watcher_->AddTree({.directory = temp_ / "none"})));
}

TEST_F(WatcherTest, TooManyDirectoriesMakeStartsUnknown) {
  Start({.directories_per_tree = 10});
  for (int i = 0; i < 20; ++i) {
    stdfs::create_directories(temp_ / fmt::format("d{}", i));
  }
  AddTree();
  EXPECT_EQ(watcher_->directories(), 10);
  EXPECT_EQ(log_.lines, 1);
  clock_.Advance(std::chrono::hours(1));
  EXPECT_FALSE(watcher_->Read("w1", clock_.Now(), clock_.Now()).complete);
  EXPECT_EQ(Classify().result, api::StartResult::kUnknown);
}

TEST_F(WatcherTest, FollowsNoLinks) {
  TempDir outside;
  AddTree();
  stdfs::create_directory_symlink(outside.path(), temp_ / "link");
  stdfs::create_directory(temp_ / "d");
  Everything();
  stdfs::remove(temp_ / "d");
  stdfs::create_directory_symlink(outside.path(), temp_ / "d");
  Everything();
  std::ofstream(outside / "secret") << "x";
  for (const FileEvent& event : Everything().events) {
    EXPECT_EQ(event.path.find("secret"), std::string::npos) << event.path;
  }
  EXPECT_EQ(watcher_->directories(), 1);
}

TEST_F(WatcherTest, OverflowMakesRecordIncomplete) {
  std::ifstream sysctl("/proc/sys/fs/inotify/max_queued_events");
  int queue = 0;
  sysctl >> queue;
  ASSERT_GT(queue, 0);
  AddTree();
  for (int i = 0; i < 64; ++i) {
    Write(fmt::format("f{}", i));
  }
  Everything();
  // Opens and closes alternate, so that the kernel does not merge them. On most machines the
  // watcher keeps up with one writer, so several writers run until the queue overflows.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::atomic<bool> over = false;
  std::vector<std::jthread> engines;
  for (int engine = 0; engine < 8; ++engine) {
    engines.emplace_back([this, engine, &over] {
      for (int i = 0; !over; ++i) {
        const std::string path = temp_ / fmt::format("f{}", (engine * 8 + i) % 64);
        ::close(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      }
    });
  }
  while (watcher_->overflows() == 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  over = true;
  engines.clear();
  ASSERT_GT(watcher_->overflows(), 0);
  Everything();
  EXPECT_FALSE(watcher_->Read("w1", clock_.Now() - Duration(1), clock_.Now()).complete);
  EXPECT_TRUE(UsedIn(watcher_->Read("w1", clock_.Now() - Duration(1), clock_.Now()),
                     caches::CacheTable::AllPresets())
                  .all);
  clock_.Advance(std::chrono::seconds(10));
  stdfs::create_directories(temp_ / "later");
  Write("later/f");
  const EventRecord later = watcher_->Read("w1", clock_.Now() - Duration(1000), clock_.Now());
  EXPECT_TRUE(later.complete);
  EXPECT_FALSE(later.events.empty());
}

TEST_F(WatcherTest, ScanOfManyDirectoriesDoesNotOverflowTheQueue) {
  std::ifstream sysctl("/proc/sys/fs/inotify/max_queued_events");
  int queue = 0;
  sysctl >> queue;
  ASSERT_GT(queue, 0);
  const int count = std::min(queue / 2, 18'000);  // a scan raises several events per directory
  stdfs::create_directories(temp_ / "inductor/fxgraph/ab");
  for (int i = 0; i < count; ++i) {
    stdfs::create_directory(temp_ / fmt::format("inductor/fxgraph/ab/f{}", i));
  }
  AddTree();
  Write("inductor/fxgraph/ab/f7/0011");
  const EventRecord record = Everything();
  EXPECT_TRUE(record.complete);
  EXPECT_FALSE(record.events.empty());
  EXPECT_GT(watcher_->directories(), count);
  EXPECT_EQ(watcher_->overflows(), 0);
}

TEST_F(WatcherTest, StopsWhileEnginesWrite) {
  AddTree();
  std::atomic<bool> over = false;
  std::jthread engine([this, &over] {
    for (int i = 0; !over; ++i) {
      Write(fmt::format("f{}", i % 100));
    }
  });
  Everything();
  watcher_.reset();
  over = true;
}

}  // namespace
}  // namespace cachewarm::agent
