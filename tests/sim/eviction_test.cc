// SPDX-License-Identifier: Apache-2.0
// A node through 1,000 rollouts of 10 warmups: the real agent loop on a real directory, the
// operator's real confirmation, virtual time. A rollout publishes a bundle, activates it, and
// replaces the pod of its warmup; the ten warmups roll out together. Without eviction the trees
// would need more than 100 MB.
#include <fmt/format.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "lib/api/json/limits.h"
#include "operator/plan/eviction/confirm.h"
#include "tests/unit/agent/loop_fixture.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;
using std::chrono::seconds;

constexpr int kRollouts = 1000;
constexpr int kWarmups = 10;
constexpr int64_t kBundleBytes = 100'000;
// Room for the mounted trees of all warmups and one more each, and a few.
constexpr int64_t kLimitBytes = 3'400'000;

class RolloutSim : public LoopTest {
 protected:
  RolloutSim() {
    threads_ = kWarmups;
    Restart({.limit_bytes = kLimitBytes, .version = "test"});
    context_->wake = [this] {
      {
        const std::lock_guard lock(mutex_);
        is_awake_ = true;
      }
      woken_.notify_all();
    };
    for (int i = 0; i < kWarmups; ++i) {
      node_cache_.spec.warmups.push_back({.uid = fmt::format("uid-{}", i),
                                          .ns = kMount.ns,
                                          .name = kMount.name,
                                          .run_as = {kMount.run_as}});
    }
    // More than the limit has room for, so that every rollout needs an eviction under pressure.
    for (api::WantedWarmup& warmup : node_cache_.spec.warmups) {
      warmup.retain = 8;
      warmup.caches = {{.name = "torchinductor"}};
    }
    pods_.resize(kWarmups);
  }

  // Ends the threads that use the members below.
  ~RolloutSim() override { loop_.reset(); }

  // One turn of operator and agent.
  void Turn() {
    std::vector<plan::MountingPod> pods;
    for (int i = 0; i < kWarmups; ++i) {
      for (const WallTime started : pods_[static_cast<size_t>(i)]) {
        pods.push_back(
            {.warmup_uid = fmt::format("uid-{}", i), .node = "node-a", .started_time = started});
      }
    }
    node_cache_.spec.evict = plan::ConfirmEvictions(
        {.node = "node-a", .offered = status_.evictable, .pods = pods, .warmups = warmups_});
    ExpectOnlyUnmounted();
    loop_->SetDesired(std::make_shared<const api::NodeCache>(node_cache_));
    loop_->RunIteration();
    EXPECT_LE(status_.node.root.used_bytes, kLimitBytes);
    EXPECT_TRUE(status_.node.root.writable) << status_.node.root.message;
    EXPECT_LE(status_.evictable.size(), api::json::kEvictionsMax);
  }

  // Every pod has mounted the tree that was active when it started.
  void ExpectOnlyUnmounted() {
    for (const api::EvictableTree& tree : node_cache_.spec.evict) {
      EXPECT_FALSE(mounted_.contains(tree.generation)) << tree.generation;
    }
  }

  std::string ActiveTree(int warmup) {
    return status_.warmups.at(static_cast<size_t>(warmup)).generation;
  }

  // Rolls out all warmups at once.
  void RollOutAll(int round) {
    for (int warmup = 0; warmup < kWarmups; ++warmup) {
      Request(warmup, round * kWarmups + warmup);
    }
    clock_.Advance(seconds(60));
    ASSERT_TRUE(IterateTurns([&] { return AreAllActive(); })) << "round " << round << Problems();
    // The new pods start beside the old ones, which then end.
    clock_.Advance(seconds(60));
    for (int warmup = 0; warmup < kWarmups; ++warmup) {
      pods_[static_cast<size_t>(warmup)].push_back(clock_.Now());
      trees_[warmup].push_back(ActiveTree(warmup));
    }
    UpdateMounted();
    Turn();
    for (int warmup = 0; warmup < kWarmups; ++warmup) {
      // Sometimes an old pod stays for a rollout.
      if ((round * kWarmups + warmup) % 13 != 0) {
        EndOldPods(warmup);
      }
    }
    UpdateMounted();
    Turn();
  }

  void Request(int warmup, int rollout) {
    api::WantedWarmup& wanted = node_cache_.spec.warmups[static_cast<size_t>(warmup)];
    const Digest digest =
        Publish({{kIndexFile, fmt::format("{} {}", rollout, std::string(kBundleBytes, 'x'))}});
    wanted.bundles = {{.key = "k", .digest = digest, .bytes = 10}};
    if (crashes_ && rollout % 7 == 0) {
      ++wanted.renew;  // a crash: an empty tree until the bundle is there
    }
  }

  bool AreAllActive() const {
    for (int warmup = 0; warmup < kWarmups; ++warmup) {
      const auto index = static_cast<size_t>(warmup);
      const api::NodeBundle& bundle = status_.warmups.at(index).bundles.at(0);
      if (bundle.state != api::BundleState::kActive ||
          bundle.digest != node_cache_.spec.warmups[index].bundles[0].digest) {
        return false;
      }
    }
    return true;
  }

  // Describes the bundles that are not active.
  std::string Problems() const {
    std::string text = fmt::format(", {} bytes used", status_.node.root.used_bytes);
    for (const api::NodeWarmup& warmup : status_.warmups) {
      text += fmt::format("\n{} {} {}", warmup.uid, Name(warmup.bundles.at(0).state),
                          warmup.bundles.at(0).message);
    }
    return text;
  }

  void EndOldPods(int warmup) {
    auto& started = pods_[static_cast<size_t>(warmup)];
    started.erase(started.begin(), started.end() - 1);
    trees_[warmup].erase(trees_[warmup].begin(), trees_[warmup].end() - 1);
  }

  void UpdateMounted() {
    mounted_.clear();
    for (const auto& [warmup, trees] : trees_) {
      mounted_.insert(trees.begin(), trees.end());
    }
  }

  bool IterateTurns(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < deadline) {
      Turn();
      if (!status_.warmups.empty() && condition()) {
        return true;
      }
      AwaitWake();
    }
    return false;
  }

  // Unless the last turn changed the offers, waits until a worker thread has ended a fetch or
  // emptied the trash.
  void AwaitWake() {
    if (std::exchange(last_offers_, status_.evictable) != status_.evictable) {
      return;
    }
    {
      std::unique_lock lock(mutex_);
      // If no thread ends its work, virtual time passes, because a refused fetch may wait for its
      // retry.
      if (!woken_.wait_for(lock, std::chrono::milliseconds(200), [this] { return is_awake_; })) {
        clock_.Advance(seconds(5));
      }
    }
    // The fetches of ten warmups end one after the other; one turn is enough for all of them.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::lock_guard lock(mutex_);
    is_awake_ = false;
  }

  int64_t Count(const std::string& folder) {
    return std::distance(stdfs::directory_iterator(root_ / folder), stdfs::directory_iterator());
  }

  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_awake_ = false;
  std::vector<api::EvictableTree> last_offers_;
  bool crashes_ = false;
  api::NodeCache node_cache_{.name = "node-a", .uid = "nc-1"};
  std::set<std::string> warmups_ = {"uid-0", "uid-1", "uid-2", "uid-3", "uid-4",
                                    "uid-5", "uid-6", "uid-7", "uid-8", "uid-9"};
  std::vector<std::vector<WallTime>> pods_;  // start times of the running pods of each warmup
  std::map<int, std::vector<std::string>> trees_;
  std::set<std::string> mounted_;
};

TEST_F(RolloutSim, AThousandRolloutsOfTenWarmupsStayBelowTheLimit) {
  for (int round = 0; round < kRollouts / kWarmups && !HasFailure(); ++round) {
    RollOutAll(round);
  }
  ASSERT_TRUE(IterateTurns([&] { return Count(".trash") == 0; }));
  EXPECT_GT(status_.node.root.evicted_bytes, kRollouts * kBundleBytes - kLimitBytes);
  EXPECT_LE(Count(".state/generations"), Count(".gen") * 3);
  EXPECT_EQ(Count(".state/links"), kWarmups);
  for (const std::string& tree : mounted_) {
    EXPECT_TRUE(root_.Exists(GenerationPath(tree))) << tree;
  }
}

TEST_F(RolloutSim, CrashesAndDeletionLeaveNothing) {
  crashes_ = true;
  for (api::WantedWarmup& warmup : node_cache_.spec.warmups) {
    warmup.retain = 1;
  }
  for (int round = 0; round < 20 && !HasFailure(); ++round) {
    RollOutAll(round);
  }
  EXPECT_LE(Count(".gen"), kWarmups * 4);
  // All warmups are deleted, then their pods.
  warmups_.clear();
  node_cache_.spec.warmups.clear();
  Turn();
  Turn();
  EXPECT_EQ(Count(kMount.ns), 1) << "pods still use the trees";
  pods_.assign(kWarmups, {});
  mounted_.clear();
  trees_.clear();
  bool is_gone = false;
  for (int i = 0; i < 1000 && !is_gone; ++i) {
    Turn();
    is_gone = Count(".gen") == 0 && Count(".trash") == 0;
    if (!is_gone) {
      AwaitWake();
    }
  }
  EXPECT_TRUE(is_gone) << Count(".gen");
  EXPECT_FALSE(root_.Exists(kMount.ns));
  EXPECT_EQ(Count(".state/links"), 0);
  EXPECT_EQ(Count(".state/generations"), 0);
}

}  // namespace
}  // namespace cachewarm::agent
