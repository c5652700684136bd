// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/scrubbing/scrub.h"

#include <gtest/gtest.h>
#include <linux/ioprio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "agent/tree/journal.h"
#include "agent/tree/links.h"
#include "agent/tree/root_layout.h"
#include "agent/tree/scan.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

class ScrubTest : public ::testing::Test, protected Workbench {
 protected:
  // Fetches a tree of these files and makes it the active one.
  std::string Activate(const std::map<std::string, std::string>& files) {
    const Fetch step = FetchOf({PublishFiles(files)->publication.digest});
    EXPECT_TRUE(std::holds_alternative<Fetched>(RunFetch(step)));
    EXPECT_TRUE(
        ActivateGeneration(root_.dir(), kMount, step.generation, {.now = clock_.Now()}).ok());
    return step.generation;
  }
  void Update() { scrub_->Update(*ScanInventory(root_.dir())); }
  double Count(const std::string& series) const {
    const std::string text = registry_->Serialize();
    const size_t at = text.find("\n" + series + " ");
    return at == std::string::npos ? 0 : std::stod(text.substr(at + series.size() + 2));
  }
  double Scrubs(const std::string& result) const {
    return Count("cachewarm_scrubs_total{result=\"" + result + "\"}");
  }
  // Collects until one more pass with this result has ended.
  bool CollectOne(const std::string& result) {
    const double before = Scrubs(result);
    const auto deadline = std::chrono::steady_clock::now() + seconds(60);
    while (Scrubs(result) == before && std::chrono::steady_clock::now() < deadline) {
      scrub_->Collect(history_);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return Scrubs(result) > before;
  }
  void Restart(Duration interval) { scrub_ = std::make_unique<Scrub>(context_, tables_, interval); }
  void Damage(const std::string& generation) {
    std::ofstream(root_ / (GenerationPath(generation) + "/" + kIndexFile)) << "by a root process";
  }

  History history_;
  bundle::WorkerPool workers_{1, 1};
  Tables tables_;
  const Context context_ = ContextWith(workers_);
  std::unique_ptr<Scrub> scrub_ = std::make_unique<Scrub>(context_, tables_, hours(1));
};

TEST_F(ScrubTest, ScrubsAfterMinutesThenOncePerInterval) {
  Activate({{kIndexFile, "index"}});
  Update();
  clock_.Advance(minutes(4));
  Update();
  EXPECT_EQ(watcher_.own_reads().size(), 0U);
  clock_.Advance(minutes(2));
  Update();
  ASSERT_TRUE(CollectOne("whole"));
  clock_.Advance(minutes(50));
  Update();
  scrub_->Collect(history_);
  EXPECT_EQ(Scrubs("whole"), 1);
  clock_.Advance(minutes(20));
  Update();
  EXPECT_TRUE(CollectOne("whole"));
}

TEST_F(ScrubTest, RestartKeepsSchedule) {
  const std::string tree = Activate({{kIndexFile, "index"}});
  ASSERT_TRUE(
      WriteScrubRecord(root_.dir(), tree, {.at = clock_.Now(), .entries = 1, .checked = 1}).ok());
  clock_.Advance(minutes(10));
  Restart(hours(1));
  Update();
  clock_.Advance(minutes(45));
  Update();
  scrub_->Collect(history_);
  EXPECT_EQ(Scrubs("whole"), 0);
  clock_.Advance(minutes(6));
  Update();
  EXPECT_TRUE(CollectOne("whole"));
}

TEST_F(ScrubTest, CanBeDisabled) {
  Activate({{kIndexFile, "index"}});
  Restart(Duration(0));
  Update();
  clock_.Advance(hours(100));
  Update();
  scrub_->Collect(history_);
  EXPECT_TRUE(watcher_.own_reads().empty());
}

TEST_F(ScrubTest, SkipsColdTrees) {
  ASSERT_TRUE(PrepareMount(root_.dir(), kMount, {.now = clock_.Now()}).ok());
  root_.Write(MountPath(kMount) + "/" + kIndexFile, "a pod's");
  Update();
  clock_.Advance(hours(2));
  Update();
  scrub_->Collect(history_);
  EXPECT_EQ(Scrubs("whole"), 0);
}

TEST_F(ScrubTest, RecordsDamagedTree) {
  const std::string tree = Activate({{kIndexFile, "index"}});
  Damage(tree);
  Update();
  clock_.Advance(minutes(6));
  Update();
  ASSERT_TRUE(CollectOne("damaged"));
  const auto damaged = ReadDamagedTrees(root_.dir());
  ASSERT_TRUE(damaged.ok());
  ASSERT_TRUE(damaged->contains(tree));
  EXPECT_EQ(damaged->at(tree).path, kIndexFile);
  EXPECT_EQ(log_.warnings(), std::vector<std::string>{"tree damaged"});
  EXPECT_EQ(Count("cachewarm_agent_failures_total{reason=\"TreeDamaged\"}"), 1);
  clock_.Advance(hours(2));
  Update();
  scrub_->Collect(history_);
  EXPECT_EQ(Scrubs("damaged"), 1) << "a damaged tree is not scrubbed again";
}

TEST_F(ScrubTest, FailedDamageRecordIsRetried) {
  const std::string tree = Activate({{kIndexFile, "index"}});
  Damage(tree);
  std::filesystem::remove_all(root_ / ".state/damaged");
  scrub_->Update({.links = {{kMount, {LinkState::kActive, tree}}},
                  .generations = {{tree, {.digests = {DigestOf("any")}}}},
                  .staging = {},
                  .damaged = {}});
  clock_.Advance(minutes(6));
  scrub_->Update({.links = {{kMount, {LinkState::kActive, tree}}},
                  .generations = {{tree, {.digests = {DigestOf("any")}}}},
                  .staging = {},
                  .damaged = {}});
  ASSERT_TRUE(CollectOne("damaged"));
  EXPECT_FALSE(root_.Exists(DamagedTreePath(tree)));
  std::filesystem::create_directory(root_ / ".state/damaged");
  scrub_->Collect(history_);
  EXPECT_TRUE(root_.Exists(DamagedTreePath(tree)));
}

TEST_F(ScrubTest, LogsFailureOnce) {
  const std::string tree = Activate({{kIndexFile, "index"}});
  ASSERT_TRUE(root_.dir().Remove(EntriesRecordPath(tree)).ok());
  Update();
  for (int pass = 0; pass < 2; ++pass) {
    clock_.Advance(hours(2));
    Update();
    ASSERT_TRUE(CollectOne("failed"));
  }
  EXPECT_EQ(log_.warnings(), std::vector<std::string>{"scrub failed"});
}

TEST_F(ScrubTest, StopsWhileReading) {
  // More bytes than one burst of the rate limit, and the clock does not advance.
  Activate({{kIndexFile, std::string(size_t{20} << 20, 'x')}});
  Update();
  clock_.Advance(minutes(6));
  Update();
  ASSERT_TRUE(clock_.AwaitWaiters(1)) << "the read rate is limited";
  const auto before = std::chrono::steady_clock::now();
  scrub_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(20));
}

// Threads of this process whose reads and writes wait for those of all others.
int ThreadsInTheIdleClass() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const int thread = std::stoi(task.path().filename().string());
    const long priority = ::syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, thread);
    count += IOPRIO_PRIO_CLASS(priority) == static_cast<long>(IOPRIO_CLASS_IDLE) ? 1 : 0;
  }
  return count;
}

TEST_F(ScrubTest, ReadsOnAThreadThatYieldsToOthers) {
  Activate({{kIndexFile, "index"}});
  Update();
  const int before = ThreadsInTheIdleClass();
  clock_.Advance(minutes(6));
  Update();
  ASSERT_TRUE(CollectOne("whole"));
  EXPECT_EQ(ThreadsInTheIdleClass(), before + 1);
}

TEST_F(ScrubTest, CountsTheBytesThatItReads) {
  const std::string tree = Activate({{kIndexFile, "index"}});
  const std::string file = root_ / (GenerationPath(tree) + "/" + kIndexFile);
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now());
  Update();
  clock_.Advance(minutes(6));
  Update();
  ASSERT_TRUE(CollectOne("whole"));
  EXPECT_EQ(Count("cachewarm_scrubbed_bytes_total"), 5);
}

}  // namespace
}  // namespace cachewarm::agent
