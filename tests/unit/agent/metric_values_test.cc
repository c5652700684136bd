// SPDX-License-Identifier: Apache-2.0
// Values of the agent's metrics after a known sequence of work on a clock that a test moves.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "agent/loop.h"
#include "agent/sync/tree_names.h"
#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "tests/fakes/await.h"
#include "tests/fakes/setting_tests.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

class MetricValues : public ::testing::Test, protected Workbench {
 protected:
  MetricValues() {
    loop_ = std::make_unique<Loop>(
        context_, GpuObservation{.facts = node_},
        LoopOptions{.limit_bytes = 1'000'000, .version = "test"},
        [this](const std::string&, api::NodeCacheStatus status) { status_ = std::move(status); });
  }

  void Want(const std::vector<Digest>& digests, std::vector<api::CaptureRequest> captures = {},
            std::vector<api::StartWindow> starts = {}) {
    api::NodeCache node_cache{.name = "node-a", .uid = "nc-1"};
    api::WantedWarmup warmup{
        .uid = kMount.uid, .ns = kMount.ns, .name = kMount.name, .run_as = {kMount.run_as}};
    for (const Digest& digest : digests) {
      warmup.bundles.push_back({.key = "k", .digest = digest, .bytes = 10});
    }
    node_cache.spec.warmups = {warmup};
    node_cache.spec.captures = std::move(captures);
    node_cache.spec.starts = std::move(starts);
    loop_->SetDesired(std::make_shared<const api::NodeCache>(node_cache));
  }
  bool TurnUntil(const std::function<bool()>& condition) {
    return fakes::Await(
        [&] {
          loop_->RunIteration();
          return condition();
        },
        seconds(60));
  }
  // A tree can be active a turn before its fetch is counted.
  bool TurnUntilActive(int fetches = 1) {
    return TurnUntil([this, fetches] {
      if (Value("cachewarm_fetches_total{result=\"ok\"}") != fetches) {
        return false;
      }
      const auto& bundles = status_.warmups.at(0).bundles;
      return std::all_of(bundles.begin(), bundles.end(), [](const auto& bundle) {
        return bundle.state == api::BundleState::kActive;
      });
    });
  }
  // Each call named `call` waits until Release().
  void Hold(std::string_view call) {
    gate_ = {};
    store_.SetFault(
        [this, name = std::string(call), held = gate_.get_future().share()](std::string_view each) {
          if (each == name) {
            ++held_;
            held.wait();
          }
          return absl::OkStatus();
        });
  }
  void Release() {
    store_.SetFault(nullptr);
    gate_.set_value();
  }

  // Of one series, "name" or "name{label=\"value\"}"; -1 when there is none.
  double Value(const std::string& series) const {
    const std::string text = "\n" + registry_->Serialize();
    const size_t at = text.find("\n" + series + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
  }

  std::promise<void> gate_;
  std::atomic<int> held_ = 0;
  bundle::WorkerPool workers_{2, 8};
  const Context context_ = ContextWith(workers_);
  api::NodeCacheStatus status_;
  std::unique_ptr<Loop> loop_;  // last: its end stops the workers
};

TEST_F(MetricValues, OfAFetch) {
  const auto published = PublishFiles({{kIndexFile, "index"}});
  ASSERT_TRUE(published.ok());
  Want({published->publication.digest});
  Hold("ReadManifest");
  ASSERT_TRUE(TurnUntil([this] { return held_ == 1; }));
  clock_.Advance(seconds(7));
  Release();
  ASSERT_TRUE(TurnUntilActive());
  EXPECT_EQ(Value("cachewarm_fetches_total{result=\"ok\"}"), 1);
  EXPECT_EQ(Value("cachewarm_fetched_bytes_total"), published->publication.bytes);
  EXPECT_EQ(Value("cachewarm_reused_bytes_total"), 0);
  EXPECT_EQ(Value("cachewarm_fetch_seconds_count"), 1);
  EXPECT_EQ(Value("cachewarm_fetch_seconds_sum"), 7);
  EXPECT_EQ(Value("cachewarm_activations_total"), 1);
  EXPECT_EQ(Value("cachewarm_warm_generations"), 1);
  EXPECT_EQ(Value("cachewarm_cold_generations"), 0);
  EXPECT_EQ(Value("cachewarm_watched_directories"), 2) << "of the empty tree and of the new one";
}

TEST_F(MetricValues, OfAFetchThatFindsFilesOfAnotherTree) {
  const std::string kept(5'000, 'k');
  const Digest first = PublishFiles({{kIndexFile, kept}})->publication.digest;
  const Digest second = PublishFiles({{kOutputFile, "new"}})->publication.digest;
  Want({first});
  ASSERT_TRUE(TurnUntilActive());
  const double moved = Value("cachewarm_fetched_bytes_total");
  Want({first, second});
  ASSERT_TRUE(TurnUntilActive(2));
  EXPECT_EQ(Value("cachewarm_reused_bytes_total"), 5'000);
  EXPECT_GT(Value("cachewarm_fetched_bytes_total"), moved);
  EXPECT_EQ(Value("cachewarm_fetches_total{result=\"ok\"}"), 2);
  EXPECT_EQ(Value("cachewarm_activations_total"), 2);
}

TEST_F(MetricValues, OfAFetchThatFails) {
  Want({DigestOf("never pushed")});
  ASSERT_TRUE(TurnUntil(
      [this] { return status_.warmups.at(0).bundles.at(0).state == api::BundleState::kFailed; }));
  EXPECT_EQ(Value("cachewarm_fetches_total{result=\"failed\"}"), 1);
  EXPECT_EQ(Value("cachewarm_agent_failures_total{reason=\"FetchFailed\"}"), 1);
  EXPECT_EQ(Value("cachewarm_warm_generations"), 0);
  EXPECT_EQ(Value("cachewarm_cold_generations"), 1);
}

TEST_F(MetricValues, OfACapture) {
  Want({});
  loop_->RunIteration();
  root_.Write(MountPath(kMount) + "/" + kIndexFile, "compiled");
  api::CaptureRequest request = Request();
  request.ready_time = clock_.Now();
  Want({}, {request});
  loop_->RunIteration();
  clock_.Advance(seconds(request.settle_seconds));
  Hold("StartBlob");
  ASSERT_TRUE(TurnUntil([this] { return held_ >= 1; }));
  clock_.Advance(seconds(5));
  Release();
  ASSERT_TRUE(
      TurnUntil([this] { return status_.captures.at(0).state == api::CaptureState::kPushed; }));
  EXPECT_EQ(Value("cachewarm_captures_total{result=\"pushed\"}"), 1);
  EXPECT_GT(status_.captures[0].bytes, 0);
  EXPECT_EQ(Value("cachewarm_published_bytes_total"), status_.captures[0].bytes);
  EXPECT_EQ(Value("cachewarm_publish_seconds_count"), 1);
  EXPECT_EQ(Value("cachewarm_publish_seconds_sum"), 5);
}

TEST_F(MetricValues, OfACaptureThatFails) {
  store_.SetFault([](std::string_view) { return absl::PermissionDeniedError("read only"); });
  Want({});
  loop_->RunIteration();
  root_.Write(MountPath(kMount) + "/" + kIndexFile, "compiled");
  api::CaptureRequest request = Request();
  request.ready_time = clock_.Now();
  Want({}, {request});
  loop_->RunIteration();
  clock_.Advance(seconds(request.settle_seconds));
  ASSERT_TRUE(
      TurnUntil([this] { return status_.captures.at(0).state == api::CaptureState::kFailed; }));
  EXPECT_EQ(Value("cachewarm_captures_total{result=\"failed\"}"), 1);
  EXPECT_EQ(Value("cachewarm_agent_failures_total{reason=\"PublishFailed\"}"), 1);
  EXPECT_EQ(Value("cachewarm_published_bytes_total"), 0);
}

TEST_F(MetricValues, OfACaptureWhoseTreeIsDamaged) {
  Want({});
  loop_->RunIteration();
  root_.Write(MountPath(kMount) + "/" + kIndexFile, "compiled");
  ASSERT_TRUE(WriteDamagedTree(root_.dir(), ColdId(kMount, 0), {.path = kIndexFile}).ok());
  Want({}, {Request()});
  ASSERT_TRUE(
      TurnUntil([this] { return status_.captures.at(0).state == api::CaptureState::kFailed; }));
  EXPECT_EQ(Value("cachewarm_captures_total{result=\"failed\"}"), 1);
  EXPECT_EQ(Value("cachewarm_agent_failures_total{reason=\"NothingToCapture\"}"), 1);
  EXPECT_EQ(log_.Count("contains damaged files"), 1);
}

TEST_F(MetricValues, OfTheLoopAndItsDisk) {
  Want({});
  loop_->RunIteration();
  loop_->RunIteration();
  EXPECT_EQ(Value("cachewarm_agent_sync_total{result=\"ok\"}"), 2);
  EXPECT_EQ(Value("cachewarm_agent_sync_seconds_count"), 2);
  EXPECT_EQ(Value("cachewarm_agent_sync_seconds_sum"), 0) << "the clock stood still";
  EXPECT_EQ(Value("cachewarm_root_limit_bytes"), 1'000'000);
  EXPECT_EQ(Value("cachewarm_root_used_bytes"), status_.node.root.used_bytes);
  EXPECT_EQ(Value("cachewarm_root_free_bytes"), status_.node.root.free_bytes);
  EXPECT_GT(Value("cachewarm_root_free_bytes"), 0);
}

TEST_F(MetricValues, OfAnEviction) {
  const auto publish = [this](const std::string& bytes) {
    return PublishFiles({{kIndexFile, bytes}})->publication.digest;
  };
  Want({publish("first")});
  ASSERT_TRUE(TurnUntilActive(1));
  Want({publish("second")});
  ASSERT_TRUE(TurnUntilActive(2));
  loop_->RunIteration();
  ASSERT_FALSE(status_.evictable.empty());
  EXPECT_EQ(Value("cachewarm_agent_evictable_bytes"), status_.node.root.evictable_bytes);
  api::NodeCache node_cache{.name = "node-a", .uid = "nc-1"};
  node_cache.spec.evict = status_.evictable;
  node_cache.spec.warmups = {{.uid = kMount.uid, .ns = kMount.ns, .name = kMount.name}};
  loop_->SetDesired(std::make_shared<const api::NodeCache>(node_cache));
  loop_->RunIteration();
  EXPECT_EQ(Value("cachewarm_agent_evictions_total{reason=\"cold\"}"), 1);
  EXPECT_EQ(Value("cachewarm_agent_evicted_bytes_total"), status_.node.root.evicted_bytes);
}

TEST_F(MetricValues, OfABundleThatDoesNotFit) {
  Want({PublishFiles({{kIndexFile, std::string(2'000'000, 'x')}})->publication.digest});
  EXPECT_TRUE(
      TurnUntil([&] { return Value("cachewarm_refused_bundles{reason=\"OverByteLimit\"}") == 1; }));
  EXPECT_EQ(Value("cachewarm_refused_bundles{reason=\"DiskFull\"}"), 0);
  Want({});
  loop_->RunIteration();
  EXPECT_EQ(Value("cachewarm_refused_bundles{reason=\"OverByteLimit\"}"), 0);
}

TEST_F(MetricValues, OfLostFileEvents) {
  Want({});
  loop_->RunIteration();
  EXPECT_EQ(Value("cachewarm_file_event_overflows_total"), 0);
  watcher_.SetOverflows(2);
  loop_->RunIteration();
  EXPECT_EQ(Value("cachewarm_file_event_overflows_total"), 2);
}

TEST_F(MetricValues, OfAStart) {
  Want({});
  loop_->RunIteration();
  const WallTime begun = clock_.Now();
  watcher_.SetEvents(ColdId(kMount, 0), {});
  clock_.Advance(seconds(30));
  Want({}, {},
       {{.pod_uid = "pod-1",
         .warmup_uid = kMount.uid,
         .run_as = kMount.run_as,
         .started_time = begun,
         .ready_time = clock_.Now()}});
  ASSERT_TRUE(TurnUntil([this] {
    clock_.Advance(seconds(5));
    return !status_.starts.empty() && status_.starts[0].result != api::StartResult::kUnknown;
  }));
  EXPECT_EQ(Value("cachewarm_observed_starts_total{result=\"" +
                  std::string(Name(status_.starts[0].result)) + "\"}"),
            1);
}

// The name of each metric that agent/metrics.cc registers, and the test that asserts its value.
TEST(EveryMetricHasATestOfItsValue, OfTheAgent) {
  const std::string here = "tests/unit/agent/metric_values_test.cc";
  const std::string calls = "tests/unit/agent/metrics_test.cc";
  const std::string scrub = "tests/unit/agent/steps/scrubbing/scrub_test.cc";
  const std::string program = "tests/integration/agent/program_test.cc";
  const std::string commands = "tests/unit/agent/remote/remote_commands_test.cc";
  const std::string endpoint = "tests/unit/agent/remote/remote_endpoint_test.cc";
  fakes::ExpectATestForEveryMetric(
      "agent/metrics.cc",
      {{"cachewarm_fetches_total", {here, "OfAFetch"}},
       {"cachewarm_fetched_bytes_total", {here, "OfAFetch"}},
       {"cachewarm_reused_bytes_total", {here, "OfAFetchThatFindsFilesOfAnotherTree"}},
       {"cachewarm_fetch_seconds", {here, "OfAFetch"}},
       {"cachewarm_captures_total", {here, "OfACapture"}},
       {"cachewarm_published_bytes_total", {here, "OfACapture"}},
       {"cachewarm_publish_seconds", {here, "OfACapture"}},
       {"cachewarm_activations_total", {here, "OfAFetch"}},
       {"cachewarm_warm_generations", {here, "OfAFetch"}},
       {"cachewarm_cold_generations", {here, "OfAFetch"}},
       {"cachewarm_agent_failures_total", {here, "OfAFetchThatFails"}},
       {"cachewarm_quarantined_bundles",
        {"tests/unit/agent/steps/scrubbing/quarantine_test.cc", "IsCountedByReason"}},
       {"cachewarm_refused_bundles", {here, "OfABundleThatDoesNotFit"}},
       {"cachewarm_scrubs_total", {scrub, "ScrubsAfterMinutesThenOncePerInterval"}},
       {"cachewarm_scrubbed_bytes_total", {scrub, "CountsTheBytesThatItReads"}},
       {"cachewarm_observed_starts_total", {here, "OfAStart"}},
       {"cachewarm_agent_sync_seconds", {here, "OfTheLoopAndItsDisk"}},
       {"cachewarm_agent_sync_total", {here, "OfTheLoopAndItsDisk"}},
       {"cachewarm_api_requests_total", {program, "FetchesReportsAndServesAsItsFileSays"}},
       {"cachewarm_store_requests_total", {calls, "StoreCallsAreCountedByOperationAndCode"}},
       {"cachewarm_store_bytes_total", {calls, "StoreCallsAreCountedByOperationAndCode"}},
       {"cachewarm_store_seconds", {calls, "StoreCallsAreCountedByOperationAndCode"}},
       {"cachewarm_root_used_bytes", {here, "OfTheLoopAndItsDisk"}},
       {"cachewarm_root_free_bytes", {here, "OfTheLoopAndItsDisk"}},
       {"cachewarm_root_limit_bytes", {here, "OfTheLoopAndItsDisk"}},
       {"cachewarm_node_condition",
        {"tests/unit/agent/loop_test.cc", "GpuThatTheDriverDoesNotReportIsACondition"}},
       {"cachewarm_agent_evictable_bytes", {here, "OfAnEviction"}},
       {"cachewarm_agent_evictions_total", {here, "OfAnEviction"}},
       {"cachewarm_agent_evicted_bytes_total", {here, "OfAnEviction"}},
       {"cachewarm_watched_directories", {here, "OfAFetch"}},
       {"cachewarm_file_event_overflows_total", {here, "OfLostFileEvents"}},
       {"cachewarm_redis_requests_total", {commands, "CountsHitsMissesAndCompileTimeByCache"}},
       {"cachewarm_redis_compile_seconds_total",
        {commands, "CountsHitsMissesAndCompileTimeByCache"}},
       {"cachewarm_redis_connections", {endpoint, "ClosesAClientThatSendsARequestTooSlowly"}},
       {"cachewarm_redis_rejected_connections_total",
        {endpoint, "TenThousandClientsOfOneTreeDoNotAffectAnother"}},
       {"cachewarm_build_info", {calls, "HaveValidNames"}}});
}

}  // namespace
}  // namespace cachewarm::agent
