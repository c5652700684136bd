// SPDX-License-Identifier: Apache-2.0
#include "agent/loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agent/tree/layout.h"
#include "agent/tree/links.h"
#include "lib/api/reasons.h"
#include "lib/bundle/signature/signature.h"
#include "tests/unit/agent/steps/workbench.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;
namespace stdfs = std::filesystem;

// A node whose loop is iterated by the test.
class LoopTest : public ::testing::Test, protected Workbench {
 protected:
  LoopTest() { Restart(); }

  void Restart(LoopOptions options = {.version = "test"}) {
    loop_.reset();
    workers_ = std::make_unique<Workers>(2, 8);
    context_ = std::make_unique<Context>(ContextWith(*workers_));
    loop_ = std::make_unique<Loop>(*context_, GpuObservation{.facts = node_}, options,
                                   [this](std::string target, api::NodeCacheStatus status) {
                                     target_ = std::move(target);
                                     status_ = std::move(status);
                                   });
  }

  void Want(const std::vector<Digest>& digests) {
    api::NodeCache node_cache{.name = "node-a", .uid = "nc-1", .spec = spec_};
    api::WantedWarmup warmup{
        .uid = kMount.uid, .ns = kMount.ns, .name = kMount.name, .run_as = {kMount.run_as}};
    for (const Digest& digest : digests) {
      warmup.bundles.push_back({.key = "k", .digest = digest, .bytes = 10});
    }
    warmup.renew = renew_;
    warmup.caches = caches_;
    node_cache.spec.warmups = {warmup};
    loop_->SetDesired(std::make_shared<const api::NodeCache>(node_cache));
  }

  // Iterates until `condition` holds; time does not advance unless the test advances it.
  bool IterateUntil(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(60);
    while (std::chrono::steady_clock::now() < deadline) {
      loop_->RunIteration();
      if (condition()) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  bool IterateUntilActive() {
    return IterateUntil([this] { return Bundle(0).state == api::BundleState::kActive; });
  }
  bool IterateUntilFailed(size_t bundle = 0) {
    return IterateUntil(
        [this, bundle] { return Bundle(bundle).state == api::BundleState::kFailed; });
  }

  // Puts a file at the path of the staging directory, so that iterations fail.
  void BreakRoot() {
    stdfs::remove_all(root_ / std::string(kStaging));
    root_.Write(std::string(kStaging), "x");
  }
  void RepairRoot() { stdfs::remove(root_ / std::string(kStaging)); }

  const api::NodeWarmup& Warmup() const { return status_.warmups.at(0); }
  const api::NodeBundle& Bundle(size_t index) const { return Warmup().bundles.at(index); }
  Digest Publish(const std::map<std::string, std::string>& files) {
    return PublishFiles(files)->publication.digest;
  }
  std::map<std::string, std::string> Shown() {
    return FilesBelow(stdfs::canonical(root_ / MountPath(kMount)));
  }

  std::unique_ptr<Workers> workers_;
  std::unique_ptr<Context> context_;
  api::NodeCacheSpec spec_;
  std::vector<api::CacheChoice> caches_;
  int renew_ = 0;
  std::unique_ptr<Loop> loop_;
  std::string target_;
  api::NodeCacheStatus status_;
};

TEST_F(LoopTest, GpuThatTheDriverDoesNotReportIsACondition) {
  spec_.node.devices = {{"amd.com/gpu", 8}};
  Want({});
  loop_->RunIteration();
  ASSERT_EQ(status_.conditions.size(), 1U);
  EXPECT_EQ(status_.conditions[0].type, "GPUNotVisible");
  EXPECT_EQ(status_.conditions[0].status, "True");
  const auto logged = [this] { return log_.Count("node condition changed"); };
  EXPECT_EQ(logged(), 1);
  loop_->RunIteration();
  EXPECT_EQ(logged(), 1) << "logged once";
  spec_.node = {};
  Want({});
  loop_->RunIteration();
  ASSERT_EQ(status_.conditions.size(), 1U);
  EXPECT_EQ(status_.conditions[0].status, "False");
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
  Restart({.limit_bytes = 150'000});
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
  const int64_t before = status_.node.root.used_bytes;
  root_.Write(GenerationPath("x") + "/f", std::string(100'000, 'x'));
  clock_.Advance(LoopOptions().active);
  loop_->RunIteration();
  EXPECT_EQ(status_.node.root.used_bytes, before);
  clock_.Advance(LoopOptions().idle);
  loop_->RunIteration();
  EXPECT_GT(status_.node.root.used_bytes, before);
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

TEST_F(LoopTest, RemovesTruncatedFileFromPreviousTree) {
  const Digest digest = Publish({{kIndexFile, "index"}});
  Want({digest});
  ASSERT_TRUE(IterateUntilActive());
  const std::string before = Warmup().generation;
  root_.Write(GenerationPath(before) + "/" + kObjectFile, SharedObject("code").substr(0, 70));
  watcher_.SetEvents(
      before, {{.type = FileEventType::kWritten, .time = clock_.Now(), .path = kObjectFile}});
  renew_ = 1;
  Want({digest});
  loop_->RunIteration();
  ASSERT_NE(Warmup().generation, before);
  clock_.Advance(seconds(2));
  loop_->RunIteration();
  EXPECT_FALSE(root_.Exists(GenerationPath(before) + "/" + kObjectFile))
      << "a container that restarted immediately has mounted this tree";
  EXPECT_TRUE(root_.Exists(GenerationPath(before) + "/" + kIndexFile));
}

TEST_F(LoopTest, DamagedBundleKeepsOldTree) {
  const Digest good = Publish({{kIndexFile, "good"}});
  const Digest bad = Publish({{kIndexFile, "bad"}});
  const auto bundle = bundle::ReadBundle({store_, "team/llama"}, bad, {});
  ASSERT_TRUE(
      store_.Corrupt("team/llama", bundle->manifest.layers.at(0).digest,
                     std::string(static_cast<size_t>(bundle->manifest.layers[0].bytes), 'x')));
  Want({good});
  ASSERT_TRUE(IterateUntilActive());
  Want({bad});
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_EQ(Bundle(0).reason, api::reason::kVerifyFailed);
  EXPECT_EQ(Shown().at(kIndexFile), "good");
}

TEST_F(LoopTest, UnsignedBundleWaitsForSignature) {
  const Digest signed_one = Publish({{kIndexFile, "signed"}});
  const Digest unsigned_one = Publish({{kIndexFile, "not yet"}});
  const bundle::RepositoryRef place{store_, "team/llama"};
  const auto signer = *bundle::PrivateKey::Parse(bundle::kSigner);
  ASSERT_TRUE(*bundle::Sign(place, signed_one, signer, {}));
  root_.Write("keys/signer.pub", bundle::kSignerPublic);
  keys_.public_key_file = root_ / "keys/signer.pub";
  Restart();
  Want({signed_one});
  ASSERT_TRUE(IterateUntilActive());
  Want({unsigned_one});
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_EQ(Bundle(0).reason, api::reason::kSignatureRejected);
  EXPECT_EQ(Shown().at(kIndexFile), "signed");
  Restart();
  Want({unsigned_one});
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_EQ(Bundle(0).reason, api::reason::kSignatureRejected);

  ASSERT_TRUE(*bundle::Sign(place, unsigned_one, signer, {}));
  clock_.Advance(std::chrono::minutes(10));
  ASSERT_TRUE(IterateUntilActive());
  EXPECT_EQ(Shown().at(kIndexFile), "not yet");
}

TEST_F(LoopTest, RejectedBundleIsNotFetchedAfterRestart) {
  node_.gpu_type = "nvidia/h100-80gb-hbm3/sm_90";
  const Digest foreign = Publish({{kIndexFile, "index"}});
  node_.gpu_type = "cpu";
  Restart();
  Want({foreign});
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_EQ(Bundle(0).reason, api::reason::kBundleRejected);
  const std::vector<api::NodeWarmup> before = status_.warmups;
  std::atomic<int> calls = 0;
  store_.SetFault([&](std::string_view) {
    ++calls;
    return absl::OkStatus();
  });
  for (int day = 0; day < 5; ++day) {
    clock_.Advance(std::chrono::hours(24));
    Restart();
    loop_->RunIteration();  // while the spec is unknown
    Want({foreign});
    loop_->RunIteration();
    EXPECT_EQ(status_.warmups, before);
  }
  Want({});
  loop_->RunIteration();
  Want({foreign});
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_GT(calls, 0) << "the failure is forgotten with the bundle in the spec";
}

TEST_F(LoopTest, DamagedTreeIsReplaced) {
  const Digest digest = Publish({{kIndexFile, "index"}});
  Want({digest});
  ASSERT_TRUE(IterateUntilActive());
  const std::string damaged = Warmup().generation;
  root_.Write(GenerationPath(damaged) + "/" + kIndexFile, "INDEX");
  clock_.Advance(seconds(400));
  ASSERT_TRUE(IterateUntil([&] {
    return Bundle(0).state == api::BundleState::kActive && Warmup().generation != damaged;
  })) << Bundle(0).message;
  EXPECT_EQ(Shown().at(kIndexFile), "index");
  EXPECT_EQ(root_.Read(GenerationPath(damaged) + "/" + kIndexFile), "INDEX")
      << "pods may have it mounted";
  EXPECT_NE(Bundle(0).message.find("replaces 1 damaged tree ("), std::string::npos);
  const std::vector<api::NodeWarmup> before = status_.warmups;
  Restart();
  Want({digest});
  loop_->RunIteration();
  EXPECT_EQ(status_.warmups, before) << "a restart does not return to the damaged tree";
}

TEST_F(LoopTest, DamagedTreeIsReplacedByColdTreeWhileStoreIsDown) {
  const Digest digest = Publish({{kIndexFile, "index"}});
  Want({digest});
  ASSERT_TRUE(IterateUntilActive());
  const std::string damaged = Warmup().generation;
  root_.Write(GenerationPath(damaged) + "/" + kIndexFile, "INDEX");
  store_.SetFault([](std::string_view) { return absl::UnavailableError("down"); });
  clock_.Advance(seconds(400));
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_TRUE(IsColdId(Warmup().generation)) << "an empty tree is always correct";
  EXPECT_TRUE(Shown().empty());
}

TEST_F(LoopTest, GivesUpAfterRepeatedlyDamagedTrees) {
  const Digest digest = Publish({{kIndexFile, "index"}});
  Want({digest});
  for (int tree = 0; tree < kTreesMax; ++tree) {
    ASSERT_TRUE(IterateUntilActive());
    root_.Write(GenerationPath(Warmup().generation) + "/" + kIndexFile, "INDEX");
    clock_.Advance(seconds(400));
    ASSERT_TRUE(IterateUntil([&] { return Bundle(0).state != api::BundleState::kActive; }));
  }
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_EQ(Bundle(0).reason, api::reason::kTreeDamaged);
  renew_ = 1;
  Want({digest});
  EXPECT_TRUE(IterateUntilActive()) << "a renewal resets the attempts";
}

TEST_F(LoopTest, InconsistentBundleIsQuarantined) {
  const std::string repository = kMount.ns + "/" + kMount.name;
  auto bundle = bundle::ReadBundle({store_, repository}, Publish({{kIndexFile, "index"}}), {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  bundle->config.entries.at(0).digest = DigestOf("other bytes than the frames hold");
  const auto config =
      bundle::WriteSmallBlob(store_, repository, *bundle::WriteConfig(bundle->config), {});
  ASSERT_TRUE(config.ok()) << config.status();
  bundle->manifest.config.digest = config->digest;
  bundle->manifest.config.bytes = config->bytes;
  const auto inconsistent_bundle =
      store_.WriteManifest(repository, *bundle::WriteManifest(bundle->manifest), "", {});
  ASSERT_TRUE(inconsistent_bundle.ok()) << inconsistent_bundle.status();
  Want({*inconsistent_bundle});
  // The frames are valid, so a fetch may not detect the mismatch; then two scrubbed trees do.
  for (int tree = 0; tree < 2; ++tree) {
    ASSERT_TRUE(IterateUntil([this] {
      return Bundle(0).state == api::BundleState::kActive ||
             Bundle(0).state == api::BundleState::kFailed;
    }));
    clock_.Advance(seconds(400));
    ASSERT_TRUE(IterateUntil([this] { return Bundle(0).state != api::BundleState::kActive; }));
  }
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_NE(Bundle(0).message.find("quarantined"), std::string::npos) << Bundle(0).message;
  EXPECT_TRUE(IsColdId(Warmup().generation));
  EXPECT_TRUE(Shown().empty());
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
