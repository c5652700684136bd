// SPDX-License-Identifier: Apache-2.0
// Trees whose pods change more than any engine does, with real events of the kernel.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "agent/evidence/pending_events.h"
#include "agent/evidence/scan_budget.h"
#include "agent/evidence/tree_watcher.h"
#include "fmt/format.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_log.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;

using ::testing::ElementsAre;

constexpr int kDirectories = 100;

// Counts how often anybody opens the directory `name` in the watched directory. Does not use the
// code under test.
class OpenCounter {
 public:
  OpenCounter(const std::string& directory, std::string name)
      : name_(std::move(name)), fd_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(::inotify_add_watch(fd_, directory.c_str(), IN_OPEN), 0);
  }
  ~OpenCounter() { ::close(fd_); }

  int Count() {
    alignas(inotify_event) char buffer[64U << 10U];
    for (ssize_t got = 0; (got = ::read(fd_, buffer, sizeof(buffer))) > 0;) {
      for (ssize_t at = 0; at < got;) {
        inotify_event event{};
        std::memcpy(&event, buffer + at, sizeof(event));
        EXPECT_EQ(event.mask & IN_Q_OVERFLOW, 0U);
        count_ += event.len > 0 && name_ == buffer + at + sizeof(event) ? 1 : 0;
        at += static_cast<ssize_t>(sizeof(event) + event.len);
      }
    }
    return count_;
  }

 private:
  const std::string name_;
  const int fd_;
  int count_ = 0;
};

class HostileTree : public ::testing::Test {
 protected:
  void Start(const WatcherLimits& limits) {
    auto started = Watcher::Start(limits, clock_, log_);
    ASSERT_TRUE(started.ok()) << started.status();
    watcher_ = *std::move(started);
  }

  void AddTree(const std::string& generation, const TempDir& directory) {
    ASSERT_TRUE(watcher_
                    ->AddTree({.generation = generation,
                               .warmup_uid = "w-" + generation,
                               .directory = directory.path(),
                               .run_as = "u1000",
                               .fresh = true})
                    .ok());
  }

  void Fill(int directories) {
    for (int i = 0; i < directories; ++i) {
      stdfs::create_directories(hostile_ / fmt::format("loop/a/d{}", i));
      std::ofstream(hostile_ / fmt::format("loop/a/d{}/f", i)) << "x";
    }
  }

  void Rename(int times) {
    const std::string a = hostile_ / "loop/a";
    const std::string b = hostile_ / "loop/b";
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(::rename(a.c_str(), b.c_str()), 0);
      ASSERT_EQ(::rename(b.c_str(), a.c_str()), 0);
    }
  }

  EventRecord ReadTree(const std::string& generation) {
    return watcher_->ReadTree(generation, clock_.Now(), clock_.Now());
  }

  TempDir hostile_;
  TempDir other_;
  fakes::FakeClock clock_;
  fakes::MemoryLog log_;
  std::unique_ptr<Watcher> watcher_;
};

TEST(PendingEventsTest, RepeatedEventOfADirectoryIsKeptOnce) {
  PendingEvents pending(10);
  const WallTime now{Duration(1)};
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(pending.Add({.watch = 1, .mask = IN_MOVED_TO | IN_ISDIR, .name = "a"}, now));
    EXPECT_TRUE(pending.Add({.watch = 1, .mask = IN_MOVED_TO | IN_ISDIR, .name = "b"}, now));
  }
  EXPECT_TRUE(pending.Add({.watch = 2, .mask = IN_MOVED_TO | IN_ISDIR, .name = "a"}, now));
  EXPECT_TRUE(pending.Add({.watch = 1, .mask = IN_CREATE | IN_ISDIR, .name = "a"}, now));
  EXPECT_EQ(pending.Take().size(), 4U);
  EXPECT_TRUE(pending.Add({.watch = 1, .mask = IN_MOVED_TO | IN_ISDIR, .name = "a"}, now));
  EXPECT_EQ(pending.Take().size(), 1U)
      << "an event that was handled does not stand for a later one";
}

TEST(PendingEventsTest, EventsOfFilesAreKeptInOrderUpToTheLimit) {
  PendingEvents pending(3);
  const WallTime now{Duration(1)};
  for (const uint32_t mask : {1U * IN_OPEN, 1U * IN_CLOSE_NOWRITE, 1U * IN_OPEN}) {
    EXPECT_TRUE(pending.Add({.watch = 1, .mask = mask, .name = "f"}, now));
  }
  EXPECT_FALSE(pending.Add({.watch = 1, .mask = IN_OPEN, .name = "g"}, now));
  std::vector<uint32_t> masks;
  for (const PendingEvents::Event& event : pending.Take()) {
    masks.push_back(event.mask);
  }
  EXPECT_THAT(masks, ElementsAre(IN_OPEN, IN_CLOSE_NOWRITE, IN_OPEN));
  EXPECT_TRUE(pending.empty());
}

TEST(ScanBudgetTest, IsRenewedAfterItsWindow) {
  ScanBudget budget({.names_max = 100, .events_per_name = 10, .window = Duration(1000)});
  const MonoTime start{Duration(5000)};
  EXPECT_EQ(budget.NamesLeft(start), 100);
  budget.SpendNames(40);
  for (int i = 0; i < 200; ++i) {
    budget.SpendEvent();
  }
  EXPECT_EQ(budget.NamesLeft(start), 40) << "200 events cost as much as 20 names";
  EXPECT_FALSE(budget.IsHalfLeft(start));
  budget.SpendNames(1000);
  EXPECT_EQ(budget.NamesLeft(start + Duration(999)), 0);
  EXPECT_EQ(budget.RenewsAt(), start + Duration(1000));
  EXPECT_EQ(budget.NamesLeft(start + Duration(1000)), 100);
}

TEST(ScanBudgetTest, RepeatedScansUseHalfOfIt) {
  const ScanBudget budget({.names_max = 1000, .window = Duration(10'000)});
  EXPECT_EQ(budget.PauseAfter(500), Duration(10'000));
}

TEST_F(HostileTree, RenameLoopEndsTheWatchesOfItsTreeOnly) {
  constexpr int kNames = 2 * kDirectories + 1;
  constexpr int kScansMax = 5;
  Fill(kDirectories);
  Start({.budget = {.names_max = kScansMax * kNames, .events_per_name = 1'000'000}});
  AddTree("g1", hostile_);
  AddTree("g2", other_);
  OpenCounter scans(hostile_ / "loop/a", "d7");
  for (int i = 0; i < 50; ++i) {
    Rename(20);
    ReadTree("g1");  // so that the renames are handled in many batches
  }
  // A scan opens a directory at most three times. Without the budget there are 50 scans.
  EXPECT_LE(scans.Count(), 3 * (kScansMax + 1));
  EXPECT_FALSE(ReadTree("g1").complete);
  EXPECT_EQ(watcher_->directories(), 1) << "only the root of the other tree is watched";
  EXPECT_EQ(watcher_->overflows(), 0);

  std::ofstream(other_ / "f") << "x";
  const EventRecord record = ReadTree("g2");
  EXPECT_TRUE(record.complete);
  EXPECT_FALSE(record.events.empty());

  clock_.Advance(std::chrono::minutes(10));
  ReadTree("g1");  // the scan is due, and its end is the begin of the complete record
  clock_.Advance(Duration(1));
  std::ofstream(hostile_ / "loop/a/d7/g") << "x";
  const EventRecord later = ReadTree("g1");
  EXPECT_TRUE(later.complete);
  ASSERT_FALSE(later.events.empty());
  EXPECT_EQ(later.events.front().path, "loop/a/d7/g");
}

TEST_F(HostileTree, OtherTreesAreServedDuringARenameLoop) {
  Fill(100);
  Start({});
  AddTree("g1", hostile_);
  std::atomic<bool> over = false;
  std::jthread loop([&] {
    while (!over) {
      Rename(1);
    }
  });
  for (int i = 0; i < 10; ++i) {
    AddTree("g2", other_);
    std::ofstream(other_ / fmt::format("f{}", i)) << "x";
    const EventRecord record = ReadTree("g2");
    EXPECT_FALSE(record.events.empty());
    watcher_->RemoveTree("g2");
  }
  over = true;
}

TEST_F(HostileTree, ManyEventsOfFilesEndTheWatchesToo) {
  Start({.budget = {.names_max = 100, .events_per_name = 10}});
  AddTree("g1", hostile_);
  std::ofstream(hostile_ / "f") << "x";
  for (int i = 0; i < 2000 && watcher_->directories() > 0; ++i) {
    ::close(::open((hostile_ / "f").c_str(), O_RDONLY | O_CLOEXEC));
    ReadTree("g1");
  }
  EXPECT_EQ(watcher_->directories(), 0);
  EXPECT_FALSE(ReadTree("g1").complete);
}

TEST_F(HostileTree, PartiallyWatchedTreeIsCompleteAgainOnceAllDirectoriesCanBeWatched) {
  Start({.directories_per_tree = 10});
  for (int i = 0; i < 20; ++i) {
    stdfs::create_directories(hostile_ / fmt::format("d{}", i));
  }
  AddTree("g1", hostile_);
  clock_.Advance(std::chrono::minutes(5));
  ReadTree("g1");
  EXPECT_FALSE(ReadTree("g1").complete) << "there are still too many";
  for (int i = 0; i < 15; ++i) {
    stdfs::remove(hostile_ / fmt::format("d{}", i));
  }
  ReadTree("g1");
  clock_.Advance(std::chrono::minutes(5));
  ReadTree("g1");
  clock_.Advance(Duration(1));
  EXPECT_TRUE(ReadTree("g1").complete);
  EXPECT_FALSE(
      watcher_->ReadTree("g1", clock_.Now() - std::chrono::minutes(1), clock_.Now()).complete)
      << "the events before the scan are not known";
  EXPECT_EQ(watcher_->directories(), 6);
}

TEST_F(HostileTree, UsesAtMostAQuarterOfTheWatchesOfTheNode) {
  std::ofstream(other_ / "max_user_watches") << "16\n";
  for (int i = 0; i < 10; ++i) {
    stdfs::create_directories(hostile_ / fmt::format("d{}", i));
  }
  Start({.max_watches_file = other_ / "max_user_watches"});
  AddTree("g1", hostile_);
  EXPECT_EQ(watcher_->directories(), 4);
}

TEST_F(HostileTree, LimitsTheBytesOfPaths) {
  const std::string name(200, 'n');
  Start({.directory_bytes_max = 1000});
  for (int i = 0; i < 10; ++i) {
    stdfs::create_directories(hostile_ / fmt::format("{}{}", name, i));
  }
  AddTree("g1", hostile_);
  EXPECT_EQ(watcher_->directories(), 1 + 4);
}

TEST_F(HostileTree, DirectoriesWithPathsThatNoBundleHoldsAreNotWatched) {
  Start({});
  const std::string name(250, 'n');
  stdfs::create_directories(hostile_ / fmt::format("{0}/{0}/{0}/{0}/{0}", name));
  AddTree("g1", hostile_);
  EXPECT_EQ(watcher_->directories(), 1 + 4);
  EXPECT_TRUE(ReadTree("g1").complete);
}

TEST_F(HostileTree, EventsAreDroppedByTheirAge) {
  Start({.keep = std::chrono::hours(2)});
  AddTree("g1", hostile_);
  std::ofstream(hostile_ / "f") << "x";
  ReadTree("g1");
  EXPECT_GT(watcher_->events(), 0);
  clock_.Advance(std::chrono::hours(2) - Duration(1));
  ReadTree("g1");
  EXPECT_GT(watcher_->events(), 0);
  clock_.Advance(std::chrono::minutes(2));
  ReadTree("g1");
  EXPECT_EQ(watcher_->events(), 0);
}

}  // namespace
}  // namespace cachewarm::agent
