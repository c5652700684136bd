// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/fetching/fetches.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "agent/sync/history.h"
#include "agent/tree/root_layout.h"
#include "lib/api/reasons.h"
#include "tests/fakes/await.h"
#include "tests/unit/agent/steps/workbench.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"

namespace cachewarm::agent {
namespace {

class FetchesTest : public ::testing::Test, protected Workbench {
 protected:
  Digest Publish() { return PublishFiles({{kIndexFile, "index"}})->publication.digest; }

  void Start(const Fetch& fetch) {
    fetches_.Start(fetch, std::make_shared<const caches::CacheTable>(table_), {}, history_);
  }

  // Collects until a fetch ends. Returns true if a generation was completed.
  bool CollectTheEnd() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < deadline) {
      const bool completed = fetches_.Collect(history_);
      if (completed || history_.fetching.empty()) {
        return completed;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "no fetch ended";
    return false;
  }

  // Blocks all calls of the store until Release().
  void Hold() {
    store_.SetFault([gate = gate_.get_future().share()](std::string_view) {
      gate.wait();
      return absl::OkStatus();
    });
  }
  void Release() { gate_.set_value(); }

  std::promise<void> gate_;
  const caches::CacheTable table_ = caches::CacheTable::AllPresets();
  History history_;
  bundle::WorkerPool workers_{1, 1};
  const Context context_ = ContextWith(workers_);
  Fetches fetches_{context_};
};

TEST_F(FetchesTest, FetchIsInHistoryUntilItEnds) {
  const Fetch fetch = FetchOf({Publish()});
  Hold();
  Start(fetch);
  EXPECT_EQ(history_.fetching, std::set<std::string>{fetch.generation})
      << "the next plan of the same iteration would discard the staging tree";
  EXPECT_FALSE(fetches_.Collect(history_));
  EXPECT_EQ(history_.fetching, std::set<std::string>{fetch.generation});
  EXPECT_EQ(fetches_.Reserved().bytes, 1);
  Release();
  EXPECT_TRUE(CollectTheEnd());
  EXPECT_TRUE(history_.fetching.empty());
  EXPECT_EQ(fetches_.Reserved().bytes, 0);
  EXPECT_TRUE(root_.Exists(GenerationPath(fetch.generation)));
}

TEST_F(FetchesTest, ProgressHasTheBytesAndTheTimeOfARunningFetch) {
  const Digest first = Publish();
  const Fetch fetch = FetchOf({first, PublishFiles({{kIndexFile, "other"}})->publication.digest});
  // Each read takes a second until the first bundle has progress; then the store hangs.
  store_.SetFault([this, gate = gate_.get_future().share()](std::string_view call) {
    if (!fetches_.Progress().empty()) {
      gate.wait();
    } else if (call == "ReadBlob") {
      clock_.Advance(std::chrono::seconds(1));
    }
    return absl::OkStatus();
  });
  Start(fetch);
  EXPECT_TRUE(fakes::Await([this] { return !fetches_.Progress().empty(); }));
  const std::map<Digest, FetchProgress> progress = fetches_.Progress();
  Release();
  EXPECT_TRUE(CollectTheEnd());
  ASSERT_TRUE(progress.contains(first));
  EXPECT_GT(progress.at(first).bytes, 0);
  EXPECT_GE(progress.at(first).seconds, 1);
  EXPECT_TRUE(fetches_.Progress().empty()) << "the fetch has ended";
}

TEST_F(FetchesTest, RunningFetchIsNotStartedAgain) {
  const Fetch fetch = FetchOf({Publish()});
  Hold();
  Start(fetch);
  Start(fetch);
  EXPECT_EQ(fetches_.Reserved().bytes, 1);
  Release();
  EXPECT_TRUE(CollectTheEnd());
  EXPECT_FALSE(fetches_.Collect(history_)) << "the second one would end too";
}

TEST_F(FetchesTest, FetchIsNotQueuedWithoutFreeWorker) {
  std::vector<Fetch> all;
  for (const char* content : {"first", "second", "third"}) {
    all.push_back(FetchOf({PublishFiles({{kIndexFile, content}})->publication.digest}));
  }
  Hold();
  for (const Fetch& fetch : all) {
    Start(fetch);
  }
  EXPECT_EQ(history_.fetching.size(), 1U)
      << "there is one thread, and a queued fetch would run before a later one of higher priority";
  Release();
  while (!history_.fetching.empty()) {
    CollectTheEnd();
  }
}

TEST_F(FetchesTest, OneWorkerIsLeftToPublications) {
  bundle::WorkerPool workers(3, 8);
  const Context context = ContextWith(workers);
  Fetches fetches(context);
  std::vector<Fetch> all;
  for (const char* content : {"first", "second", "third"}) {
    all.push_back(FetchOf({PublishFiles({{kIndexFile, content}})->publication.digest}));
  }
  Hold();
  for (const Fetch& fetch : all) {
    fetches.Start(fetch, std::make_shared<const caches::CacheTable>(table_), {}, history_);
  }
  EXPECT_EQ(history_.fetching.size(), 2U);
  std::promise<void> published;
  EXPECT_TRUE(workers.Post([&](std::stop_token) { published.set_value(); }));
  EXPECT_EQ(published.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  Release();
  workers.Stop();
}

TEST_F(FetchesTest, CancelledFetchEndsAndLeavesNoFailure) {
  const Fetch fetch = FetchOf({Publish()});
  Hold();
  Start(fetch);
  fetches_.Cancel({fetch.generation, "another"});
  EXPECT_EQ(history_.fetching, std::set<std::string>{fetch.generation}) << "it still runs";
  Release();
  EXPECT_FALSE(CollectTheEnd());
  EXPECT_TRUE(history_.bundles.empty());
  EXPECT_TRUE(history_.generations.empty());
  EXPECT_FALSE(root_.Exists(GenerationPath(fetch.generation)));
  EXPECT_EQ(fetches_.Reserved().bytes, 0);
  Start(fetch);
  EXPECT_TRUE(CollectTheEnd()) << "a later fetch of the tree is not affected";
}

TEST_F(FetchesTest, MissingBundleIsRecordedForBundle) {
  const Fetch fetch = FetchOf({DigestOf("never pushed")});
  Start(fetch);
  EXPECT_FALSE(CollectTheEnd());
  const auto& failure = history_.bundles.at({kMount.uid, DigestOf("never pushed")});
  EXPECT_EQ(failure.reason, api::reason::kFetchFailed);
  EXPECT_GT(failure.not_before, clock_.Monotonic());
}

TEST_F(FetchesTest, UnsignedBundleIsRecordedForBundle) {
  Context context = ContextWith(workers_);
  context.keys.public_key_file = root_ / "key.pub";
  root_.Write("key.pub", bundle::kSignerPublic);
  Fetches fetches(context);
  const Digest digest = Publish();
  const Fetch fetch = FetchOf({digest});
  fetches.Start(fetch, std::make_shared<const caches::CacheTable>(table_), {}, history_);
  while (!history_.fetching.empty()) {
    fetches.Collect(history_);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto& failure = history_.bundles.at({kMount.uid, digest});
  EXPECT_EQ(failure.reason, api::reason::kSignatureRejected);
  EXPECT_NE(failure.message.find("has no signature"), std::string::npos) << failure.message;
}

TEST_F(FetchesTest, StoreFailureIsRecordedForGeneration) {
  const Fetch fetch = FetchOf({Publish()});
  store_.SetFault([](std::string_view) { return absl::UnavailableError("503"); });
  Start(fetch);
  EXPECT_FALSE(CollectTheEnd());
  EXPECT_TRUE(history_.bundles.empty());
  EXPECT_EQ(history_.generations.at(fetch.generation).count, 1);
  store_.SetFault(nullptr);
  Start(fetch);
  EXPECT_TRUE(CollectTheEnd());
  EXPECT_TRUE(history_.generations.empty()) << "forgotten once it worked";
}

}  // namespace
}  // namespace cachewarm::agent
