// SPDX-License-Identifier: Apache-2.0
#include "agent/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "agent/sync/tree_names.h"
#include "agent/tree/links.h"
#include "agent/tree/root_layout.h"
#include "lib/api/reasons.h"
#include "tests/unit/agent/loop_fixture.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;
namespace stdfs = std::filesystem;

TEST_F(LoopTest, GpuThatTheDriverDoesNotReportIsACondition) {
  spec_.node.devices = {{"amd.com/gpu", 8}};
  Want({});
  loop_->RunIteration();
  ASSERT_EQ(status_.conditions.size(), 1U);
  EXPECT_EQ(status_.conditions[0].type, "GPUNotVisible");
  EXPECT_EQ(status_.conditions[0].status, "True");
  const std::string series = "cachewarm_node_condition{type=\"GPUNotVisible\"}";
  EXPECT_THAT(registry_->Serialize(), ::testing::HasSubstr(series + " 1\n"));
  const auto logged = [this] { return log_.Count("NodeCache condition changed"); };
  EXPECT_EQ(logged(), 1);
  loop_->RunIteration();
  EXPECT_EQ(logged(), 1) << "logged once";
  spec_.node = {};
  Want({});
  loop_->RunIteration();
  ASSERT_EQ(status_.conditions.size(), 1U);
  EXPECT_EQ(status_.conditions[0].status, "False");
  EXPECT_THAT(registry_->Serialize(), ::testing::HasSubstr(series + " 0\n"));
  EXPECT_EQ(logged(), 2);
}

TEST_F(LoopTest, PreparesFirstAndReportsTheNode) {
  Want({});
  loop_->RunIteration();
  EXPECT_EQ(Warmup().prepared, std::vector<std::string>{"image"});
  EXPECT_EQ(status_.node.gpu_type, "cpu");
  EXPECT_EQ(status_.node.agent_version, "test");
  EXPECT_TRUE(status_.node.root.writable);
  EXPECT_EQ(target_, "nc-1");
}

TEST_F(LoopTest, ActivatesWantedBundle) {
  Want({Publish({{kIndexFile, "index"}})});
  ASSERT_TRUE(IterateUntilActive());
  EXPECT_EQ(Shown(), (std::map<std::string, std::string>{{kIndexFile, "index"}}));
  EXPECT_EQ(Warmup().generation.size(), 32U);
}

TEST_F(LoopTest, WatchesTreeBeforeActivation) {
  Want({Publish({{kIndexFile, "index"}})});
  ASSERT_TRUE(IterateUntilActive());
  EXPECT_TRUE(watcher_.trees().contains(Warmup().generation));
  EXPECT_TRUE(watcher_.trees().contains(ColdId(kMount, 0))) << "older pods still use it";
}

TEST_F(LoopTest, WatchesActiveTreeAfterRestart) {
  Want({Publish({{kIndexFile, "index"}})});
  ASSERT_TRUE(IterateUntilActive());
  const std::string active = Warmup().generation;
  watcher_.RemoveTree(active);  // the watches of a process end with it
  Restart();
  loop_->RunIteration();
  EXPECT_TRUE(watcher_.trees().contains(active));
}

TEST_F(LoopTest, RepairsBrokenLinkBeforeSpecIsKnown) {
  stdfs::create_directories(root_ / MountParent(kMount));
  stdfs::create_symlink(LinkTarget(std::string(32, 'e')), root_ / MountPath(kMount));
  loop_->RunIteration();
  EXPECT_TRUE(stdfs::is_directory(root_ / MountPath(kMount)));
  EXPECT_EQ(target_, "");
}

TEST_F(LoopTest, RestoresExternallyRemovedTrees) {
  const Digest digest = Publish({{kIndexFile, std::string(100'000, 'x')}});
  Restart({.limit_bytes = 350'000});  // room for one tree
  Want({digest});
  ASSERT_TRUE(IterateUntilActive());
  const std::string before = Warmup().generation;
  watcher_.SetEvents(before,
                     {{.type = FileEventType::kRead, .time = clock_.Now(), .path = kIndexFile}});
  for (const std::string_view folder : {kGenerations, kStaging, kState}) {
    stdfs::remove_all(root_ / std::string(folder));
  }
  loop_->RunIteration();
  EXPECT_TRUE(stdfs::is_directory(root_ / MountPath(kMount))) << "a container can be created";
  EXPECT_EQ(Warmup().prepared.size(), 1U);
  EXPECT_FALSE(watcher_.trees().contains(before));
  ASSERT_TRUE(IterateUntilActive()) << Bundle(0).message;
  EXPECT_EQ(Warmup().generation, before);
  EXPECT_EQ(Shown().at(kIndexFile).size(), 100'000U);
  EXPECT_TRUE(watcher_.trees().contains(before));
  EXPECT_TRUE(watcher_.ReadTree(before, WallTime{}, clock_.Now()).events.empty())
      << "the events belong to the removed tree";
}

TEST_F(LoopTest, ReportsRemovedRoot) {
  Want({});
  loop_->RunIteration();
  EXPECT_FALSE(loop_->is_root_gone());
  stdfs::remove_all(root_.path());
  loop_->RunIteration();
  EXPECT_TRUE(loop_->is_root_gone());
  EXPECT_FALSE(status_.node.root.writable);
  EXPECT_NE(Warmup().message.find("root directory"), std::string::npos) << Warmup().message;
}

TEST_F(LoopTest, RootRecoversAfterFailure) {
  Want({});
  loop_->RunIteration();
  BreakRoot();
  loop_->RunIteration();
  EXPECT_FALSE(status_.node.root.writable);
  EXPECT_FALSE(status_.node.root.message.empty());
  EXPECT_TRUE(Warmup().prepared.empty());
  RepairRoot();
  clock_.Advance(LoopOptions().idle);
  loop_->RunIteration();
  EXPECT_TRUE(status_.node.root.writable) << status_.node.root.message;
  EXPECT_EQ(Warmup().prepared.size(), 1U);
}

TEST_F(LoopTest, UnusableRootIsNotMeasuredInEveryIteration) {
  Want({});
  loop_->RunIteration();
  BreakRoot();
  clock_.Advance(LoopOptions().idle);
  loop_->RunIteration();
  loop_->RunIteration();
  RepairRoot();
  clock_.Advance(LoopOptions().active);
  loop_->RunIteration();
  EXPECT_FALSE(status_.node.root.writable);
  clock_.Advance(LoopOptions().idle);
  loop_->RunIteration();
  EXPECT_TRUE(status_.node.root.writable);
}

TEST_F(LoopTest, RollsBackWithoutStore) {
  const Digest first = Publish({{kIndexFile, "first"}});
  const Digest second = Publish({{kIndexFile, "second"}});
  Want({first});
  ASSERT_TRUE(IterateUntilActive());
  Want({second});
  ASSERT_TRUE(IterateUntilActive());
  EXPECT_EQ(Shown().at(kIndexFile), "second");
  store_.SetFault([](std::string_view) { return absl::UnavailableError("down"); });
  Want({first});
  ASSERT_TRUE(IterateUntilActive());
  EXPECT_EQ(Shown().at(kIndexFile), "first");
}

TEST_F(LoopTest, KeepsActiveTreeWithoutNodeCache) {
  Want({Publish({{kIndexFile, "index"}})});
  ASSERT_TRUE(IterateUntilActive());
  Want({});
  loop_->RunIteration();
  loop_->SetDesired(nullptr);
  loop_->RunIteration();
  EXPECT_EQ(Shown().at(kIndexFile), "index");
}

TEST_F(LoopTest, RenewMakesFreshTreeOfSameBundle) {
  const Digest digest = Publish({{kIndexFile, "index"}});
  Want({digest});
  ASSERT_TRUE(IterateUntilActive());
  const std::string before = Warmup().generation;
  root_.Write(MountPath(kMount) + "/" + kObjectFile, "truncated by a killed pod");
  renew_ = 1;
  Want({digest});
  ASSERT_TRUE(IterateUntil([&] {
    return Bundle(0).state == api::BundleState::kActive && Warmup().generation != before;
  }));
  EXPECT_EQ(Shown(), (std::map<std::string, std::string>{{kIndexFile, "index"}}));
}

TEST_F(LoopTest, FailedBundleDoesNotBlockOthers) {
  const Digest good = Publish({{kIndexFile, "good"}});
  Want({good, DigestOf("never pushed")});
  ASSERT_TRUE(IterateUntil([this] {
    return Bundle(0).state == api::BundleState::kActive &&
           Bundle(1).state == api::BundleState::kFailed;
  }));
  EXPECT_EQ(Shown().at(kIndexFile), "good");
}

TEST_F(LoopTest, RetriesWhenStoreIsDown) {
  const Digest digest = Publish({{kIndexFile, "index"}});
  store_.SetFault([](std::string_view) { return absl::UnavailableError("503 from the registry"); });
  Want({digest});
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_EQ(Bundle(0).reason, api::reason::kFetchFailed);
  EXPECT_NE(Bundle(0).message.find("503"), std::string::npos);
  EXPECT_EQ(Warmup().prepared.size(), 1U) << "pods may start cold";
  store_.SetFault(nullptr);
  clock_.Advance(seconds(60));
  EXPECT_TRUE(IterateUntilActive());
}

TEST_F(LoopTest, RefusesFetchAboveByteLimit) {
  const Digest digest = Publish({{kIndexFile, std::string(100'000, 'x')}});
  Restart({.limit_bytes = 50'000});
  Want({digest});
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_EQ(Bundle(0).reason, api::reason::kOverLimit);
}

TEST_F(LoopTest, RestartReportsSameStatus) {
  const Digest digest = Publish({{kIndexFile, "index"}});
  Want({digest});
  ASSERT_TRUE(IterateUntilActive());
  const std::vector<api::NodeWarmup> before = status_.warmups;
  store_.SetFault([](std::string_view) { return absl::UnavailableError("down"); });
  Restart();
  Want({digest});
  loop_->RunIteration();
  EXPECT_EQ(status_.warmups, before);
}

TEST_F(LoopTest, ReportsLateCompilesUntilTheyAreCounted) {
  Want({});
  loop_->RunIteration();
  watcher_.SetEvents(
      Warmup().generation,
      {{.type = FileEventType::kMovedTo, .time = clock_.Now() + seconds(5), .path = kIndexFile}});
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(seconds(10));
    loop_->RunIteration();
  }
  const api::LateCompiles reported = Warmup().late_compiles;
  EXPECT_EQ(reported.entries, 1);

  api::NodeCache node_cache{.name = "node-a", .uid = "nc-1", .status = status_};
  node_cache.spec.warmups = {
      {.uid = kMount.uid, .ns = kMount.ns, .name = kMount.name, .run_as = {kMount.run_as}}};
  Restart();
  loop_->SetDesired(std::make_shared<const api::NodeCache>(node_cache));
  loop_->RunIteration();
  EXPECT_EQ(Warmup().late_compiles, reported) << "the operator may not have counted it yet";

  node_cache.spec.warmups[0].late_counted = reported.report;
  loop_->SetDesired(std::make_shared<const api::NodeCache>(node_cache));
  loop_->RunIteration();
  EXPECT_EQ(Warmup().late_compiles, api::LateCompiles());
}

TEST_F(LoopTest, HarvestsWhatARunningPodCompiled) {
  const Digest base = Publish({{kAutogradFile, "bundled"}});
  harvests_ = true;
  Want({base});
  ASSERT_TRUE(IterateUntilActive()) << Bundle(0).message;
  loop_->RunIteration();
  const std::string tree = Warmup().generation;
  CompileLate(tree);
  ASSERT_EQ(Warmup().harvestable.units, 1) << Warmup().harvestable.message;
  api::CaptureRequest request = Request();
  request.ready_time = clock_.Now();
  request.base_digest = base;
  request.generation = Warmup().harvestable.generation;
  spec_.captures = {request};
  Want({base});
  loop_->RunIteration();
  clock_.Advance(seconds(request.settle_seconds));
  ASSERT_TRUE(IterateUntil([this] {
    return status_.captures.at(0).state == api::CaptureState::kPushed;
  })) << status_.captures.at(0).message;
  EXPECT_EQ(status_.captures[0].files, 2);
  Want({status_.captures[0].digest});
  ASSERT_TRUE(IterateUntilActive()) << Bundle(0).message;
  loop_->RunIteration();
  EXPECT_EQ(Warmup().harvestable.units, 0) << "the larger bundle has the unit";
}

TEST_F(LoopTest, HarvestsFromTreesThatWereReplacedHoursAgo) {
  harvests_ = true;
  Want({});
  loop_->RunIteration();
  loop_->RunIteration();
  const std::string tree = Warmup().generation;
  renew_ = 1;
  Want({});
  ASSERT_TRUE(IterateUntil([&] { return Warmup().generation != tree; }));
  watcher_.SetEvents(tree, {});  // complete
  clock_.Advance(std::chrono::hours(3));
  loop_->RunIteration();
  CompileLate(tree);
  EXPECT_EQ(Warmup().harvestable.generation, tree) << "a running pod may have it mounted";
  EXPECT_EQ(Warmup().harvestable.units, 1) << Warmup().harvestable.message;
}

TEST_F(LoopTest, ReportsCaptureUntilRequestIsRemoved) {
  Want({});
  loop_->RunIteration();
  root_.Write(MountPath(kMount) + "/" + kIndexFile, "compiled");
  api::CaptureRequest request = Request();
  request.ready_time = clock_.Now();
  spec_.captures = {request};
  Want({});
  loop_->RunIteration();
  ASSERT_EQ(status_.captures.size(), 1U);
  clock_.Advance(seconds(request.settle_seconds));
  ASSERT_TRUE(IterateUntil([this] {
    return status_.captures.at(0).state == api::CaptureState::kPushed;
  })) << status_.captures.at(0).message;
  loop_->SetDesired(nullptr);
  loop_->RunIteration();
  EXPECT_EQ(status_.captures.size(), 1U) << "the result is kept without a NodeCache";
  spec_.captures.clear();
  Want({});
  loop_->RunIteration();
  EXPECT_TRUE(status_.captures.empty());
}

TEST_F(LoopTest, WaitsBetweenFailedIterations) {
  const Digest digest = Publish({{kIndexFile, "index"}});
  store_.SetFault([](std::string_view) { return absl::UnavailableError("down"); });
  Want({digest});
  ASSERT_TRUE(IterateUntilFailed());
  BreakRoot();
  clock_.Advance(seconds(60));  // the retry is due
  const std::jthread running([this](std::stop_token stop) { loop_->Run(stop); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  const MonoTime before = loop_->last_iteration();
  clock_.Advance(LoopOptions().idle - Duration(1));
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_EQ(loop_->last_iteration(), before);
}

TEST_F(LoopTest, RunsUntilItIsStopped) {
  Want({});
  std::jthread running([this](std::stop_token stop) { loop_->Run(stop); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  const auto before = std::chrono::steady_clock::now();
  running.request_stop();
  running.join();
  EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(20));
  EXPECT_NE(loop_->last_iteration(), MonoTime{});
}

TEST_F(LoopTest, AFetchIsRefusedWhenTheRunningOnesTakeWhatTheByteLimitLeaves) {
  Restart({.limit_bytes = 150'000});
  std::promise<void> gate;
  store_.SetFault([held = gate.get_future().share()](std::string_view call) {
    if (call == "ReadManifest") {
      held.wait();
    }
    return absl::OkStatus();
  });
  api::NodeCache node_cache{.name = "node-a", .uid = "nc-1"};
  const auto want = [&](const std::string& uid) {
    node_cache.spec.warmups.push_back(
        {.uid = uid,
         .ns = kMount.ns,
         .name = "of-" + uid,
         .run_as = {kMount.run_as},
         .bundles = {{.key = "k", .digest = DigestOf(uid), .bytes = 100'000}}});
    loop_->SetDesired(std::make_shared<const api::NodeCache>(node_cache));
    loop_->RunIteration();
  };
  want("uid-1");
  EXPECT_EQ(Bundle(0).state, api::BundleState::kFetching);
  want("uid-2");
  const api::NodeBundle& second = status_.warmups.at(1).bundles.at(0);
  EXPECT_EQ(second.state, api::BundleState::kFailed);
  EXPECT_EQ(second.reason, api::reason::kOverLimit) << second.message;
  gate.set_value();
}

// Removes the link at a mount path whenever the agent logs that it made it.
class LinkRemover final : public Log {
 public:
  explicit LinkRemover(stdfs::path link) : link_(std::move(link)) {}

  void Write(LogLevel, std::string_view msg, LogFields) override {
    if (msg == "directory prepared" && stdfs::remove(link_)) {
      ++removed_;
    }
  }
  int removed() const { return removed_; }

 private:
  const stdfs::path link_;
  int removed_ = 0;
};

TEST_F(LoopTest, AnIterationMakesFourPlansAtMost) {
  LinkRemover remover(root_ / MountPath(kMount));
  const Context context{.root = context_->root,
                        .store = context_->store,
                        .watcher = context_->watcher,
                        .workers = context_->workers,
                        .clock = context_->clock,
                        .random = context_->random,
                        .log = remover,
                        .metrics = context_->metrics,
                        .node = context_->node,
                        .transfer_threads = context_->transfer_threads,
                        .keys = context_->keys,
                        .limits = context_->limits,
                        .wake = context_->wake};
  loop_ = std::make_unique<Loop>(context, GpuObservation{.facts = node_}, LoopOptions{},
                                 [](const std::string&, const api::NodeCacheStatus&) {});
  Want({});
  loop_->RunIteration();
  EXPECT_EQ(remover.removed(), 4) << "each plan prepares the directory again";
  loop_.reset();  // uses `context`
}

TEST_F(LoopTest, ServesRedisInTheActiveTreeAndInTreesOfRunningPods) {
  std::set<std::string> served;
  Restart({.version = "test",
           .serve_redis = [&served](std::set<std::string> trees) { served = std::move(trees); }});
  Want({});
  ASSERT_TRUE(IterateUntil([&] { return !status_.warmups.empty(); }));
  EXPECT_TRUE(served.empty()) << "the warmup does not select the preset";
  caches_ = {{.name = "torchinductor-redis"}};
  Want({});
  ASSERT_TRUE(IterateUntil([&] { return served.size() == 1; }));
  const std::string first = *served.begin();
  EXPECT_TRUE(stdfs::is_directory(root_ / first)) << first;
  renew_ = 1;
  Want({});
  ASSERT_TRUE(IterateUntil([&] { return served.size() == 2; }));
  EXPECT_TRUE(served.contains(first)) << "a running pod has it mounted";
  clock_.Advance(std::chrono::hours(3));
  ASSERT_TRUE(IterateUntil([&] { return served.size() == 1; }));
  EXPECT_FALSE(served.contains(first));
  caches_ = {};
  Want({});
  EXPECT_TRUE(IterateUntil([&] { return served.empty(); }));
}

}  // namespace
}  // namespace cachewarm::agent
