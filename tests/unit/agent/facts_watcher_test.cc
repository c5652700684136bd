// SPDX-License-Identifier: Apache-2.0
#include "agent/facts_watcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/fakes/await.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_log.h"

namespace cachewarm::agent {
namespace {

// A node whose driver the test changes, watched with a fake clock.
class FactsWatcherTest : public ::testing::Test {
 protected:
  ~FactsWatcherTest() override {
    stop_.request_stop();
    running_ = {};
  }

  void Start() {
    watcher_ = std::make_unique<FactsWatcher>(
        clock_, log_,
        NodeProbes{.all = [this](std::stop_token) { return All(); },
                   .without_gpu = [this] { return WithoutGpu(); },
                   .driver_state = [this] { return std::to_string(driver_.load()); }},
        [this](GpuObservation gpu) {
          std::lock_guard lock(mutex_);
          reports_.push_back(std::move(gpu));
        });
    running_ = std::jthread([this] { watcher_->Run(stop_.get_token()); });
  }

  absl::StatusOr<fingerprint::NodeFacts> All() {
    ++queries_;
    std::lock_guard lock(mutex_);
    if (!error_.empty()) {
      return absl::UnavailableError(error_);
    }
    return facts_;
  }
  absl::StatusOr<fingerprint::NodeFacts> WithoutGpu() {
    std::lock_guard lock(mutex_);
    if (is_file_bad_) {
      return absl::InvalidArgumentError("facts.yaml: gpuType: expected a GPU type");
    }
    return fingerprint::NodeFacts{.gpu_type = {}, .cpu_class = facts_.cpu_class};
  }
  void Set(const std::string& gpu_type, const std::string& error = "") {
    std::lock_guard lock(mutex_);
    facts_.gpu_type = gpu_type;
    error_ = error;
  }
  bool Queried(int times) {
    return fakes::Await([&] { return queries_ >= times; }, std::chrono::seconds(60));
  }
  std::vector<GpuObservation> Reports(size_t count) {
    fakes::Await(
        [&] {
          std::lock_guard lock(mutex_);
          return reports_.size() >= count;
        },
        std::chrono::seconds(60));
    std::lock_guard lock(mutex_);
    return reports_;
  }
  // Advances the clock until another query was made.
  void AdvanceUntilQueried(int times) {
    fakes::Await(
        [&] {
          clock_.Advance(Duration(1'000));
          return queries_ >= times;
        },
        std::chrono::seconds(60));
  }

  fakes::FakeClock clock_;
  fakes::MemoryLog log_;
  std::mutex mutex_;
  fingerprint::NodeFacts facts_{.gpu_type = "cpu", .cpu_class = "x86-64-v4/amd-25-17/5c0d9f21"};
  std::string error_;
  bool is_file_bad_ = false;
  std::atomic<int> queries_ = 0;
  std::atomic<int> driver_ = 0;
  std::vector<GpuObservation> reports_;
  std::unique_ptr<FactsWatcher> watcher_;
  std::stop_source stop_;
  std::jthread running_;
};

TEST_F(FactsWatcherTest, QueriesAgainAfterTenMinutes) {
  Start();
  ASSERT_EQ(Reports(1).size(), 1U);
  const MonoTime begin = clock_.Monotonic();
  AdvanceUntilQueried(2);
  EXPECT_GE(clock_.Monotonic() - begin, Duration(600'000));
  EXPECT_EQ(Reports(1).size(), 1U) << "equal facts are reported once";
  EXPECT_EQ(log_.Count("node probed"), 1);
}

TEST_F(FactsWatcherTest, ChangedDriverStateStartsAQuery) {
  Start();
  ASSERT_EQ(Reports(1)[0].facts.gpu_type, "cpu");
  Set("nvidia/h200/sm_90");
  const MonoTime begin = clock_.Monotonic();
  ++driver_;
  ASSERT_TRUE(Queried(2));
  const auto reports = Reports(2);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[1].facts.gpu_type, "nvidia/h200/sm_90");
  EXPECT_LT(clock_.Monotonic() - begin, Duration(600'000));
}

TEST_F(FactsWatcherTest, WakeStartsAQuery) {
  Start();
  ASSERT_TRUE(Queried(1));
  watcher_->Wake();
  EXPECT_TRUE(Queried(2));
}

TEST_F(FactsWatcherTest, FirstFailureReportsAnUnknownGpu) {
  Set("nvidia/h200/sm_90", "driver hangs");
  Start();
  const auto first = Reports(1);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_TRUE(first[0].is_gpu_unknown);
  EXPECT_EQ(first[0].facts.gpu_type, "");
  EXPECT_EQ(first[0].facts.cpu_class, "x86-64-v4/amd-25-17/5c0d9f21");
  EXPECT_EQ(first[0].probe_error, "driver hangs");
  AdvanceUntilQueried(3);
  EXPECT_EQ(log_.Count("cannot probe the node"), 1) << "the same error is logged once";
  Set("nvidia/h200/sm_90");
  AdvanceUntilQueried(4);
  const auto reports = Reports(2);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_FALSE(reports[1].is_gpu_unknown);
  EXPECT_EQ(reports[1].facts.gpu_type, "nvidia/h200/sm_90");
}

TEST_F(FactsWatcherTest, LaterFailureKeepsTheFacts) {
  Set("nvidia/h200/sm_90");
  Start();
  ASSERT_EQ(Reports(1).size(), 1U);
  Set("cpu", "GPU is lost");
  ++driver_;
  const auto reports = Reports(2);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[1].facts.gpu_type, "nvidia/h200/sm_90");
  EXPECT_FALSE(reports[1].is_gpu_unknown);
  EXPECT_EQ(reports[1].probe_error, "GPU is lost");
}

TEST_F(FactsWatcherTest, BadFactsFileReportsNothing) {
  Set("cpu", "facts.yaml: bad");
  is_file_bad_ = true;
  Start();
  ASSERT_TRUE(Queried(1));
  AdvanceUntilQueried(2);
  EXPECT_EQ(log_.Count("facts.yaml: gpuType"), 1);
  std::lock_guard lock(mutex_);
  EXPECT_TRUE(reports_.empty());
}

}  // namespace
}  // namespace cachewarm::agent
