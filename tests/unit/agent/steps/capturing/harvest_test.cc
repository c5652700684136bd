// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "agent/steps/capturing/capture_jobs.h"
#include "agent/tree/journal.h"
#include "agent/tree/links.h"
#include "agent/tree/root_layout.h"
#include "lib/api/reasons.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;
using Paths = std::set<std::string, std::less<>>;

const std::string kLateFile = "inductor/fxgraph/ab/flate/entry";
const std::string kStartFile = "inductor/fxgraph/ab/fstart/entry";
const std::string kTuning = "inductor/cd/kernel.best_config";
const std::string kLateTuning = "inductor/cd/late.best_config";

// The bundle has kIndexFile, kObjectFile and kTuning. A running pod on this node has compiled
// kLateFile; another pod, which has not completed its start, kStartFile.
class HarvestTest : public ::testing::Test, protected Workbench {
 protected:
  HarvestTest() : context_(ContextWith(workers_)) {
    const auto published = PublishFiles(Bundled());
    EXPECT_TRUE(published.ok()) << published.status();
    base_ = published->publication.digest;
    EXPECT_TRUE(PrepareMount(root_.dir(), kMount, {.now = clock_.Now()}).ok());
    clock_.Advance(seconds(60));
    for (const auto& [path, bytes] : Bundled()) {
      Write(path, bytes);
    }
    Write(kLateFile, "late");
    Write(kStartFile, "half of it");
    captures_ = std::make_unique<Captures>(context_);
    order_ = {.request = Request(),
              .ns = kMount.ns,
              .name = kMount.name,
              .table = {std::shared_ptr<void>(), &caches::CacheTable::AllPresets()}};
    order_.request.ready_time = clock_.Now();
    order_.request.base_digest = base_;
    order_.request.generation = ReadActivations(root_.dir(), kMount).back().generation;
    Use({kLateFile});
  }
  ~HarvestTest() override { workers_.Stop(); }

  static std::map<std::string, std::string> Bundled() {
    return {{kIndexFile, "index"}, {kObjectFile, SharedObject("code")}, {kTuning, "block 64"}};
  }
  void Write(const std::string& path, const std::string& bytes) {
    root_.Write(MountPath(kMount) + "/" + path, bytes);
  }
  void Use(const Paths& paths) {
    order_.harvest.used =
        std::make_shared<const UsedFiles>(UsedFiles{.all = false, .paths = paths});
  }
  api::CaptureStatus PollAfter(int second) {
    clock_.Advance(seconds(second));
    captures_->Poll({order_});
    return captures_->Statuses().at(0);
  }
  // Polls until the capture has a result.
  api::CaptureStatus Harvested() {
    PollAfter(0);
    api::CaptureStatus status = PollAfter(2);
    for (int i = 0; i < 6000 && captures_->IsWaiting(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      status = PollAfter(0);
    }
    return status;
  }
  Paths PathsOf(const Digest& digest) {
    Paths paths;
    const auto bundle = bundle::ReadBundle({store_, "team/llama"}, digest, {});
    EXPECT_TRUE(bundle.ok()) << bundle.status();
    for (const bundle::Entry& entry : bundle->config.entries) {
      paths.insert(entry.path);
    }
    return paths;
  }

  bundle::WorkerPool workers_{2, 8};
  Context context_;
  std::unique_ptr<Captures> captures_;
  CaptureOrder order_;
  Digest base_;
};

TEST_F(HarvestTest, AddsLateFilesToTheBundleAndNoFileOfAStart) {
  const api::CaptureStatus status = Harvested();
  ASSERT_EQ(status.state, api::CaptureState::kPushed) << status.message;
  EXPECT_NE(status.digest, base_);
  EXPECT_EQ(PathsOf(status.digest), (Paths{kIndexFile, kObjectFile, kTuning, kLateFile}));
  const auto larger = bundle::ReadBundle({store_, "team/llama"}, status.digest, {});
  const auto base = bundle::ReadBundle({store_, "team/llama"}, base_, {});
  ASSERT_EQ(larger->manifest.layers.size(), 2U) << "one more layer";
  EXPECT_EQ(larger->manifest.layers[0], base->manifest.layers[0]);
}

TEST_F(HarvestTest, NativeCodeOfAStartThatFailedStaysOut) {
  // Captures of builders always take the marker and the object, and with them their unit.
  Write("inductor/ef/cfailed.so.load_ok", "");
  Write("inductor/ef/cfailed.so", SharedObject("of a start that failed"));
  Write("inductor/ef/cother.o", SharedObject("of a start that failed"));
  const api::CaptureStatus status = Harvested();
  ASSERT_EQ(status.state, api::CaptureState::kPushed) << status.message;
  EXPECT_EQ(PathsOf(status.digest), (Paths{kIndexFile, kObjectFile, kTuning, kLateFile}));
}

TEST_F(HarvestTest, NodeNeedsNoFileOfTheBundle) {
  std::filesystem::remove_all(root_ / (MountPath(kMount) + "/inductor/cd"));
  const api::CaptureStatus status = Harvested();
  ASSERT_EQ(status.state, api::CaptureState::kPushed) << status.message;
  EXPECT_EQ(PathsOf(status.digest), (Paths{kIndexFile, kObjectFile, kTuning, kLateFile}));
}

TEST_F(HarvestTest, FilesThatTheBundleHasGiveItsDigest) {
  Use({kIndexFile, kObjectFile});
  const api::CaptureStatus status = Harvested();
  ASSERT_EQ(status.state, api::CaptureState::kPushed) << status.message;
  EXPECT_EQ(status.digest, base_);
}

TEST_F(HarvestTest, FilesOfTheBundleThatWereRewrittenAreNotReplaced) {
  Write(kIndexFile, "rewritten by a running pod");
  Use({kIndexFile});
  EXPECT_EQ(Harvested().digest, base_) << "nothing is new, so no node fetches a larger bundle";
}

TEST_F(HarvestTest, ResultsOfTheSameTuningAreAdded) {
  Write(kLateTuning, "block 32");
  Use({kLateFile, kLateTuning});
  const api::CaptureStatus status = Harvested();
  ASSERT_EQ(status.state, api::CaptureState::kPushed) << status.message;
  EXPECT_TRUE(PathsOf(status.digest).contains(kLateTuning));
}

TEST_F(HarvestTest, ResultsOfAnotherTuningStayOut) {
  Write(kTuning, "block 128");
  Write(kLateTuning, "block 32");
  Use({kLateFile, kLateTuning, kTuning});
  const api::CaptureStatus status = Harvested();
  ASSERT_EQ(status.state, api::CaptureState::kPushed) << status.message;
  EXPECT_FALSE(PathsOf(status.digest).contains(kLateTuning));
  EXPECT_TRUE(PathsOf(status.digest).contains(kLateFile));
  const auto larger = bundle::ReadBundle({store_, "team/llama"}, status.digest, {});
  for (const bundle::Entry& entry : larger->config.entries) {
    if (entry.path == kTuning) {
      EXPECT_EQ(entry.digest, DigestOf("block 64"));
    }
  }
}

TEST_F(HarvestTest, OnlyResultsOfAnotherTuningGiveTheDigestOfTheBundle) {
  Write(kTuning, "block 128");
  Use({kTuning});
  const api::CaptureStatus status = Harvested();
  ASSERT_EQ(status.state, api::CaptureState::kPushed) << status.message;
  EXPECT_EQ(status.digest, base_);
}

TEST_F(HarvestTest, WaitsWhileAPodStarts) {
  order_.harvest.used = nullptr;
  order_.harvest.wait = "waiting for the start of a pod";
  PollAfter(0);
  const api::CaptureStatus status = PollAfter(60);
  EXPECT_EQ(status.state, api::CaptureState::kWaiting);
  EXPECT_EQ(status.message, order_.harvest.wait);
  order_.harvest.wait.clear();
  Use({kLateFile});
  EXPECT_EQ(PollAfter(1).state, api::CaptureState::kWaiting) << "it has to settle";
  EXPECT_EQ(Harvested().state, api::CaptureState::kPushed);
}

TEST_F(HarvestTest, FilesAreNeededOnlyUntilTheTreeIsPacked) {
  EXPECT_TRUE(captures_->CanAdvance(order_.request.id));
  order_.harvest = {};  // as in an order that was made while the tree was being packed
  EXPECT_EQ(PollAfter(0).state, api::CaptureState::kWaiting);
  EXPECT_TRUE(captures_->CanAdvance(order_.request.id));
  Use({kLateFile});
  EXPECT_EQ(Harvested().state, api::CaptureState::kPushed);
  EXPECT_FALSE(captures_->CanAdvance(order_.request.id));
}

TEST_F(HarvestTest, RefusalIsFinalAndReported) {
  order_.harvest.refusal = "file events were lost";
  EXPECT_EQ(PollAfter(0).state, api::CaptureState::kFailed);
  EXPECT_EQ(PollAfter(0).reason, api::reason::kHarvestRefused);
  EXPECT_EQ(PollAfter(0).message, "file events were lost");
  EXPECT_FALSE(captures_->IsWaiting());
}

TEST_F(HarvestTest, DamagedTreeIsRefused) {
  ASSERT_TRUE(WriteDamagedTree(root_.dir(), order_.request.generation, {}).ok());
  EXPECT_EQ(PollAfter(0).reason, api::reason::kHarvestRefused);
}

TEST_F(HarvestTest, BundleThatIsGoneIsARefusal) {
  order_.request.base_digest = DigestOf("gone");
  EXPECT_EQ(Harvested().reason, api::reason::kHarvestRefused);
}

}  // namespace
}  // namespace cachewarm::agent
