// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/capturing/capture_jobs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agent/sync/tree_names.h"
#include "agent/tree/journal.h"
#include "agent/tree/links.h"
#include "agent/tree/retire.h"
#include "agent/tree/root_layout.h"
#include "lib/api/reasons.h"
#include "lib/bundle/transfer.h"
#include "lib/capture/engine_factors.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

// Counts wakes, so that tests wait for the end of a job instead of sleeping.
class WakeCounter {
 public:
  void Wake() {
    std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  bool Await(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, seconds(60), [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

class CapturesTest : public ::testing::Test, protected Workbench {
 protected:
  CapturesTest() : context_(ContextWith(workers_, [this] { wakes_.Wake(); })) {
    EXPECT_TRUE(PrepareMount(root_.dir(), kMount, {.now = clock_.Now()}).ok());
    clock_.Advance(seconds(60));
    captures_ = std::make_unique<Captures>(context_);
    order_ = {.request = Request(),
              .ns = kMount.ns,
              .name = kMount.name,
              .table = {std::shared_ptr<void>(), &caches::CacheTable::AllPresets()}};
  }
  ~CapturesTest() override { workers_.Stop(); }

  void Write(const std::string& path, const std::string& bytes) {
    root_.Write(MountPath(kMount) + "/" + path, bytes);
  }
  void WriteCache() {
    Write(kIndexFile, "index");
    Write(kObjectFile, SharedObject("code"));
  }
  api::CaptureStatus Poll() {
    captures_->Poll({order_});
    return captures_->Statuses().at(0);
  }
  api::CaptureStatus PollAfter(int second) {
    clock_.Advance(seconds(second));
    return Poll();
  }
  // Waits until the running publication has ended and was processed.
  api::CaptureStatus AwaitEnd() {
    EXPECT_TRUE(wakes_.Await(++expected_wakes_));
    return Poll();
  }
  void Ready() { order_.request.ready_time = clock_.Now(); }

  bundle::WorkerPool workers_{2, 8};
  WakeCounter wakes_;
  int expected_wakes_ = 0;
  Context context_;
  std::unique_ptr<Captures> captures_;
  CaptureOrder order_;
};

TEST_F(CapturesTest, WaitsForReadyEvenWhenQuiet) {
  WriteCache();
  EXPECT_EQ(Poll().state, api::CaptureState::kWaiting);
  EXPECT_EQ(PollAfter(60).state, api::CaptureState::kWaiting);
  EXPECT_NE(Poll().message.find("not ready"), std::string::npos);
  EXPECT_TRUE(captures_->IsWaiting());
}

TEST_F(CapturesTest, PublishesWhenReadyAndQuiet) {
  WriteCache();
  Ready();
  EXPECT_EQ(Poll().state, api::CaptureState::kWaiting);
  EXPECT_EQ(PollAfter(1).state, api::CaptureState::kWaiting);
  EXPECT_EQ(PollAfter(1).state, api::CaptureState::kPacking);
  const api::CaptureStatus done = AwaitEnd();
  EXPECT_EQ(done.state, api::CaptureState::kPushed) << done.message;
  EXPECT_FALSE(done.digest.empty());
  EXPECT_EQ(done.files, 2);
  EXPECT_GT(done.bytes, 0);
  EXPECT_TRUE(done.native);
  EXPECT_FALSE(captures_->IsWaiting());
  EXPECT_TRUE(store_.ReadManifest("team/llama", done.digest, {}).ok());
}

TEST_F(CapturesTest, ReportsFilesThatNoCacheKindNames) {
  WriteCache();
  Write("new_engine/kernels/a.bin", std::string(10'000'000, 'x'));
  Ready();
  Poll();
  PollAfter(2);
  const api::CaptureStatus done = AwaitEnd();
  EXPECT_EQ(done.state, api::CaptureState::kPushed) << done.message;
  EXPECT_EQ(done.files, 2);
  EXPECT_EQ(done.left_behind.files, 1);
  EXPECT_EQ(done.left_behind.bytes, 10'000'000);
  EXPECT_EQ(done.left_behind.directories, std::vector<std::string>{"new_engine/kernels"});
  Poll();
  EXPECT_EQ(log_.Count("1 files, 10.0 MB in new_engine/kernels"), 1) << log_.Text();
  captures_ = std::make_unique<Captures>(context_);
  EXPECT_EQ(Poll().left_behind, done.left_behind) << "after a restart";
}

TEST_F(CapturesTest, QuietCountsFromTheLastChange) {
  WriteCache();
  Ready();
  Poll();
  clock_.Advance(seconds(1));
  Write(kOutputFile, "late");
  EXPECT_EQ(Poll().state, api::CaptureState::kWaiting);
  EXPECT_EQ(PollAfter(1).state, api::CaptureState::kWaiting);
  EXPECT_EQ(PollAfter(1).state, api::CaptureState::kPacking);
  EXPECT_EQ(AwaitEnd().files, 3);
}

TEST_F(CapturesTest, TreeIsListedAgainOnlyAfterNewEvents) {
  const auto files = [this] { return PollAfter(1).message; };
  WriteCache();
  watcher_.SetEvents(ColdId(kMount, 0), {});
  EXPECT_NE(files().find("has 2 files"), std::string::npos);
  Write(kOutputFile, "without an event");
  EXPECT_NE(files().find("has 2 files"), std::string::npos) << "the tree was listed for nothing";
  watcher_.SetEvents(
      ColdId(kMount, 0),
      {{.type = FileEventType::kMovedTo, .time = clock_.Now() + seconds(1), .path = kOutputFile}});
  EXPECT_NE(files().find("has 3 files"), std::string::npos);
}

TEST_F(CapturesTest, TreeIsListedBeforeItCountsAsQuiet) {
  WriteCache();
  watcher_.SetEvents(ColdId(kMount, 0), {});
  Poll();
  Write(kOutputFile, "grows while its writer has it open, without an event");
  Ready();
  EXPECT_EQ(PollAfter(2).state, api::CaptureState::kWaiting);
  EXPECT_EQ(PollAfter(1).state, api::CaptureState::kWaiting);
  EXPECT_EQ(PollAfter(1).state, api::CaptureState::kPacking);
  AwaitEnd();
}

TEST_F(CapturesTest, LocksAndLogsDoNotDelaySettling) {
  WriteCache();
  Ready();
  Poll();
  clock_.Advance(seconds(2));
  Write(kLockFile, "in_flight");
  EXPECT_EQ(Poll().state, api::CaptureState::kPacking);
  AwaitEnd();
}

TEST_F(CapturesTest, ReadyBuilderWithoutFilesIsWaiting) {
  Ready();
  EXPECT_EQ(PollAfter(60).state, api::CaptureState::kWaiting);
  EXPECT_EQ(Poll().reason, api::reason::kNothingToCapture);
}

TEST_F(CapturesTest, CapturesTreeThatBuilderMounted) {
  WriteCache();
  Ready();
  const std::string newer(32, 'a');
  root_.Write(GenerationPath(newer) + "/" + kIndexFile, "of another bundle");
  clock_.Advance(seconds(120));
  ASSERT_TRUE(ActivateGeneration(root_.dir(), kMount, newer, {.now = clock_.Now()}).ok());
  Poll();
  EXPECT_EQ(PollAfter(2).state, api::CaptureState::kPacking);
  EXPECT_EQ(AwaitEnd().files, 2);
}

TEST_F(CapturesTest, SelectsTreeByFileEvents) {
  const std::string newer(32, 'a');
  root_.Write(GenerationPath(newer) + "/" + kIndexFile, "used by the builder");
  // Flipped two seconds before started_time, so the container may have mounted either tree.
  ASSERT_TRUE(
      ActivateGeneration(root_.dir(), kMount, newer, {.now = clock_.Now() - seconds(2)}).ok());
  watcher_.SetEvents(ColdId(kMount, 0), {});
  watcher_.SetEvents(
      newer,
      {{.type = FileEventType::kOpened, .time = clock_.Now() + seconds(1), .path = kIndexFile}});
  Ready();
  Poll();
  EXPECT_EQ(PollAfter(3).state, api::CaptureState::kPacking);
  EXPECT_EQ(AwaitEnd().files, 1);
}

TEST_F(CapturesTest, CapturesOnlyFilesUsedByBuilder) {
  WriteCache();
  Write("inductor/fxgraph/zz/fold/entry9", "of the seed");
  watcher_.SetEvents(
      ColdId(kMount, 0),
      {{.type = FileEventType::kMovedTo, .time = order_.request.started_time, .path = kIndexFile}});
  Ready();
  Poll();
  PollAfter(2);
  EXPECT_EQ(AwaitEnd().files, 1);
}

TEST_F(CapturesTest, DeclaresOwnReads) {
  WriteCache();
  Ready();
  Poll();
  PollAfter(2);
  AwaitEnd();
  // Each file is read once for its facts and once for packing.
  EXPECT_EQ(watcher_.own_reads().size(), 4U);
}

TEST_F(CapturesTest, RetriesWhileStoreIsDown) {
  store_.SetFault([](std::string_view) { return absl::UnavailableError("503"); });
  WriteCache();
  Ready();
  Poll();
  PollAfter(2);
  api::CaptureStatus status = AwaitEnd();
  EXPECT_EQ(status.state, api::CaptureState::kPacking);
  EXPECT_EQ(status.reason, api::reason::kPublishFailed);
  EXPECT_NE(status.message.find("503"), std::string::npos);
  store_.SetFault(nullptr);
  PollAfter(31);
  status = AwaitEnd();
  EXPECT_EQ(status.state, api::CaptureState::kPushed) << status.message;
  EXPECT_EQ(status.reason, "");
}

TEST_F(CapturesTest, CaptureFailsIfStoreStaysDown) {
  store_.SetFault([](std::string_view) { return absl::UnavailableError("503"); });
  WriteCache();
  Ready();
  Poll();
  for (int i = 0; i < 4; ++i) {
    PollAfter(31);
    AwaitEnd();
  }
  EXPECT_EQ(captures_->Statuses()[0].state, api::CaptureState::kFailed);
  EXPECT_EQ(captures_->Statuses()[0].reason, api::reason::kPublishFailed);
}

TEST_F(CapturesTest, WaitsForBuilderWithoutUsedFiles) {
  WriteCache();
  watcher_.SetEvents(ColdId(kMount, 0), {});
  Ready();
  Poll();
  PollAfter(2);
  EXPECT_EQ(AwaitEnd().state, api::CaptureState::kWaiting);
  EXPECT_EQ(captures_->Statuses()[0].reason, api::reason::kNothingToCapture);
}

TEST_F(CapturesTest, DeniedCaptureFailsAndRecovers) {
  store_.SetFault([](std::string_view) { return absl::PermissionDeniedError("not yours"); });
  WriteCache();
  Ready();
  Poll();
  PollAfter(2);
  EXPECT_EQ(AwaitEnd().state, api::CaptureState::kFailed);
  PollAfter(31);  // retries; the state remains Failed meanwhile
  EXPECT_EQ(captures_->Statuses()[0].state, api::CaptureState::kFailed);
  AwaitEnd();
  store_.SetFault(nullptr);
  PollAfter(31);
  EXPECT_EQ(AwaitEnd().state, api::CaptureState::kPushed);
}

TEST_F(CapturesTest, RankAddsToBundleToKeep) {
  const auto first = PublishFiles({{"triton/RANK0/kernel.cubin", "of another node"}});
  ASSERT_TRUE(first.ok()) << first.status();
  order_.request.base_digest = first->publication.digest;
  WriteCache();
  Ready();
  Poll();
  PollAfter(2);
  const api::CaptureStatus done = AwaitEnd();
  EXPECT_EQ(done.state, api::CaptureState::kPushed) << done.message;
  EXPECT_EQ(done.files, 3);
  EXPECT_NE(done.digest, order_.request.base_digest);
}

TEST_F(CapturesTest, RankFailsWhileBundleToKeepIsMissing) {
  order_.request.base_digest = DigestOf("missing");
  WriteCache();
  Ready();
  Poll();
  PollAfter(2);
  const api::CaptureStatus failed = AwaitEnd();
  EXPECT_EQ(failed.state, api::CaptureState::kFailed);
  EXPECT_EQ(failed.reason, api::reason::kPublishFailed);
  EXPECT_NE(failed.message.find("must extend"), std::string::npos);
  EXPECT_EQ(PollAfter(31).state, api::CaptureState::kFailed);
  AwaitEnd();
}

TEST_F(CapturesTest, RequestForOtherNodeFails) {
  WriteCache();
  Ready();
  order_.request.factors.cpu_class = "x86-64-v3/intel-6-85/0123abcd";
  order_.request.key = *fingerprint::KeyOf(order_.request.factors);
  const api::CaptureStatus status = Poll();
  EXPECT_EQ(status.state, api::CaptureState::kFailed);
  EXPECT_NE(status.message.find("this node is"), std::string::npos);
}

TEST_F(CapturesTest, UnsafeMountNameHasNoEffect) {
  order_.ns = "../../etc";
  Ready();
  EXPECT_EQ(PollAfter(5).state, api::CaptureState::kWaiting);
}

TEST_F(CapturesTest, RestartKeepsResult) {
  WriteCache();
  Ready();
  Poll();
  PollAfter(2);
  const api::CaptureStatus before = AwaitEnd();
  store_.SetFault([](std::string_view) { return absl::InternalError("must not be called"); });
  captures_ = std::make_unique<Captures>(context_);
  EXPECT_EQ(Poll(), before);
}

TEST_F(CapturesTest, RestartWithoutRecordGivesSameDigest) {
  WriteCache();
  Ready();
  Poll();
  PollAfter(2);
  const api::CaptureStatus before = AwaitEnd();
  ASSERT_TRUE(RemoveCaptureRecord(root_.dir(), order_.request.id).ok());
  captures_ = std::make_unique<Captures>(context_);
  Poll();
  PollAfter(2);
  EXPECT_EQ(AwaitEnd().digest, before.digest);
}

// File of a second pod that starts in the tree while the files of the builder settle.
TEST_F(CapturesTest, KeyFactorsOfALaterStartAreNotInTheBundle) {
  const Scratch scratch;
  const std::string salt(32, 's');
  scratch.Write("salt", salt);
  context_.factor_salt_file = scratch.path() + "/salt";
  const auto write = [this](const std::string& key) {
    const std::string file =
        "vllm/torch_compile_cache/" + key + "/rank_0_0/backbone/cache_key_factors.json";
    Write(file, "{\"code_hash\": \"" + key + "\"}");
    std::filesystem::last_write_time(std::filesystem::path(root_.path()) / MountPath(kMount) / file,
                                     std::chrono::file_clock::from_sys(clock_.Now()));
  };
  WriteCache();
  write("builder");
  Ready();
  Poll();
  clock_.Advance(seconds(5));
  write("later");
  Poll();
  const api::CaptureStatus first = AwaitEnd();
  const auto bundle =
      bundle::ReadBundle({.store = store_, .repository = "team/llama"}, first.digest, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ(bundle->config.facts.engine_factors,
            *capture::HashEngineFactors("{\"code_hash\": \"builder\"}", "rank_0_0/backbone", salt));
  ASSERT_TRUE(RemoveCaptureRecord(root_.dir(), order_.request.id).ok());
  captures_ = std::make_unique<Captures>(context_);
  write("latest");
  Poll();
  PollAfter(2);
  EXPECT_EQ(AwaitEnd().digest, first.digest) << "the same digest at each attempt";
}

TEST_F(CapturesTest, ForgetsRemovedRequests) {
  WriteCache();
  Ready();
  Poll();
  PollAfter(2);
  AwaitEnd();
  captures_->Poll({});
  EXPECT_TRUE(captures_->Statuses().empty());
  EXPECT_TRUE(ReadCaptureRecords(root_.dir()).empty());
}

TEST_F(CapturesTest, ADamagedTreeIsNotPublished) {
  std::atomic<int> calls = 0;
  store_.SetFault([&](std::string_view) {
    ++calls;
    return absl::OkStatus();
  });
  WriteCache();
  Ready();
  Poll();
  ASSERT_TRUE(WriteDamagedTree(root_.dir(), ColdId(kMount, 0), {.path = kIndexFile}).ok());
  const api::CaptureStatus status = PollAfter(2);
  EXPECT_EQ(status.state, api::CaptureState::kFailed);
  EXPECT_EQ(status.reason, api::reason::kNothingToCapture);
  EXPECT_NE(status.message.find("damaged"), std::string::npos) << status.message;
  workers_.Stop();
  EXPECT_EQ(calls, 0);
}

TEST_F(CapturesTest, BuilderWhoseTreeWasRetiredFailsForGood) {
  const auto start_on = [this](const char* boot) {
    return RetireForeignTrees(root_.dir(), {"cpu", boot}, {.now = clock_.Now()}).ok();
  };
  ASSERT_TRUE(start_on("boot 1"));
  const std::string bundle(32, 'a');
  root_.Write(GenerationPath(bundle) + "/" + kIndexFile, "of a bundle");
  ASSERT_TRUE(ActivateGeneration(root_.dir(), kMount, bundle, {.now = clock_.Now()}).ok());
  clock_.Advance(seconds(120));
  order_.request.started_time = clock_.Now();
  Ready();
  clock_.Advance(seconds(20));
  ASSERT_TRUE(start_on("boot 2"));
  const api::CaptureStatus status = PollAfter(2);
  EXPECT_EQ(status.state, api::CaptureState::kFailed);
  EXPECT_EQ(status.reason, api::reason::kNothingToCapture);
  EXPECT_NE(status.message.find("another builder is needed"), std::string::npos) << status.message;
  EXPECT_EQ(PollAfter(600).state, api::CaptureState::kFailed);
}

TEST_F(CapturesTest, ATreeThatIsFoundDamagedWhileItIsPublishedIsNotReportedAsPushed) {
  WriteCache();
  Ready();
  Poll();
  std::promise<void> gate;
  store_.SetFault([held = gate.get_future().share()](std::string_view) {
    held.wait();
    return absl::OkStatus();
  });
  ASSERT_EQ(PollAfter(2).state, api::CaptureState::kPacking);
  ASSERT_TRUE(WriteDamagedTree(root_.dir(), ColdId(kMount, 0), {.path = kIndexFile}).ok());
  gate.set_value();
  const api::CaptureStatus status = AwaitEnd();
  EXPECT_EQ(status.state, api::CaptureState::kFailed);
  EXPECT_EQ(status.reason, api::reason::kNothingToCapture);
  EXPECT_NE(status.message.find("damaged"), std::string::npos) << status.message;
  EXPECT_TRUE(status.digest.empty());
}

}  // namespace
}  // namespace cachewarm::agent
