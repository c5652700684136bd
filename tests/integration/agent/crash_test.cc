// SPDX-License-Identifier: Apache-2.0
// Kills the agent's steps at every system call that changes the file system, looks at the disk as
// a starting container would, starts anew, and looks again. What must hold after any kill:
//   the name that pods mount leads to a directory, and that is the old tree or the new one, whole;
//   no tree that was ever active has changed;
//   the next process reaches the same end as one that was never killed, and leaves no litter.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "agent/steps/fetch.h"
#include "agent/steps/publish.h"
#include "agent/sync/plan.h"
#include "agent/tree/journal.h"
#include "agent/tree/layout.h"
#include "agent/tree/links.h"
#include "agent/tree/records.h"
#include "agent/tree/root.h"
#include "agent/tree/scan.h"
#include "lib/bundle/store/layout/layout_store.h"
#include "lib/bundle/transfer.h"
#include "lib/fingerprint/key.h"
#include "lib/fs/tree.h"
#include "tests/fakes/cache_files.h"
#include "tests/integration/agent/kill_at_call.h"
#include "tests/unit/agent/scratch.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;

using Files = std::map<std::string, std::string>;

const Mount kMount{"team", "llama", "uid-1", "image"};
const std::string kCpuClass = "x86-64-v4/amd-25-17/5c0d9f21";

fingerprint::NodeFacts NodeFacts() {
  fingerprint::NodeFacts facts;
  facts.cpu_class = kCpuClass;
  return facts;
}

api::CaptureRequest Request() {
  api::CaptureRequest request{
      .id = "pod-1",
      .warmup_uid = kMount.uid,
      .run_as = kMount.run_as,
      .factors = {.gpu_type = "cpu", .cpu_class = kCpuClass, .image = "llama:1", .container = "c"}};
  request.key = *fingerprint::KeyOf(request.factors);
  return request;
}

absl::StatusOr<Published> PublishFrom(bundle::Store& store, const std::string& directory) {
  const absl::StatusOr<fs::Dir> tree = fs::Dir::Open(directory);
  if (!tree.ok()) {
    return tree.status();
  }
  const fingerprint::NodeFacts node = NodeFacts();
  return PublishTree({.store = store,
                      .tree = *tree,
                      .table = caches::CacheTable::AllPresets(),
                      .node = node,
                      .request = Request(),
                      .ns = kMount.ns,
                      .name = kMount.name,
                      .used = {.all = true}},
                     {});
}

// One life of an agent that wants `digests`: what the daemon does at start, then plan and steps
// until nothing is left to do. One thread. False when a step fails.
bool LiveOnce(const std::string& root_path, bundle::Store& store,
              const std::vector<Digest>& digests) {
  const absl::StatusOr<fs::Dir> root = OpenRoot(root_path);
  if (!root.ok() || !SweepLeftovers(*root).ok() || !MendJournal(*root, SystemClock().Now()).ok()) {
    return false;
  }
  api::WantedWarmup warmup{
      .uid = kMount.uid, .ns = kMount.ns, .name = kMount.name, .run_as = {kMount.run_as}};
  for (const Digest& digest : digests) {
    warmup.bundles.push_back({.key = "k", .digest = digest, .bytes = 1});
  }
  const api::NodeCacheSpec desired{.warmups = {warmup}};
  const caches::CacheTable& table = caches::CacheTable::AllPresets();
  for (int round = 0; round < 10; ++round) {
    const absl::StatusOr<Inventory> inventory = ScanInventory(*root);
    if (!inventory.ok()) {
      return false;
    }
    const History history;
    const Plan plan = MakePlan({.desired = desired, .inventory = *inventory, .history = history});
    if (plan.steps.empty()) {
      return true;
    }
    const PrepareOptions options{.folders = table.Directories(), .now = SystemClock().Now()};
    for (const Step& step : plan.steps) {
      bool done = true;
      if (const auto* prepare = std::get_if<Prepare>(&step)) {
        done = PrepareMount(*root, prepare->mount, options).ok();
      } else if (const auto* activate = std::get_if<Activate>(&step)) {
        done = ActivateGeneration(*root, activate->mount, activate->generation, options).ok();
      } else if (const auto* discard = std::get_if<Discard>(&step)) {
        done = fs::RemoveTree(*root, StagingPath(discard->staging)).ok();
      } else {
        done = std::holds_alternative<Fetched>(FetchGeneration({.store = store,
                                                                .root = *root,
                                                                .table = table,
                                                                .clock = SystemClock(),
                                                                .step = std::get<Fetch>(step),
                                                                .gpu_type = "cpu",
                                                                .cpu_class = kCpuClass},
                                                               {}));
      }
      if (!done) {
        return false;
      }
    }
  }
  return false;
}

// A disk before the kill, put together anew for each one.
struct Scene {
  std::string name;
  std::function<void(const Scratch&)> before;  // the root, below "root"
  std::vector<Digest> wanted;
  std::vector<Files> allowed;  // what the mount may show after a kill
  Files final;                 // and what it shows in the end
  bool may_be_absent = false;  // nothing stood at the mount before, or a link to nothing
};

// Every point takes long; CACHEWARM_CRASH_POINTS=0 takes them all, any other number so many of
// each scene, evenly spread.
int StrideFor(int points) {
  const char* wanted = std::getenv("CACHEWARM_CRASH_POINTS");
  const int count = wanted == nullptr ? 40 : std::atoi(wanted);
  return count <= 0 ? 1 : std::max(1, points / count);
}

class CrashTest : public ::testing::Test {
 protected:
  CrashTest() : store_(bundles_.path(), SystemClock()) {
    first_ = Publish(first_files_);
    second_ = Publish(second_files_);
  }

  Digest Publish(const Files& files) {
    const Scratch tree;
    for (const auto& [path, bytes] : files) {
      tree.Write(path, bytes);
    }
    const absl::StatusOr<Published> published = PublishFrom(store_, tree.path());
    EXPECT_TRUE(published.ok()) << published.status();
    return published->publication.digest;
  }

  bool Live(const Scratch& scratch, const std::vector<Digest>& wanted) {
    return LiveOnce((scratch / "root").string(), store_, wanted);
  }

  // What a container that starts now would find.
  static void ExpectWhole(const Scene& scene, const Scratch& scratch, int point) {
    const stdfs::path mount = scratch / ("root/" + MountPath(kMount));
    std::error_code error;
    if (scene.may_be_absent && !stdfs::exists(mount, error)) {
      return;
    }
    ASSERT_TRUE(stdfs::is_directory(mount, error))
        << scene.name << " at " << point << ": the mount is dangling";
    const Files shown = FilesBelow(stdfs::canonical(mount));
    EXPECT_NE(std::find(scene.allowed.begin(), scene.allowed.end(), shown), scene.allowed.end())
        << scene.name << " at " << point << ": neither the old tree nor the new one";
  }

  static void ExpectTidy(const Scene& scene, const Scratch& scratch, int point) {
    EXPECT_TRUE(stdfs::is_empty(scratch / "root/.staging")) << scene.name << " at " << point;
    for (const auto& entry : stdfs::recursive_directory_iterator(scratch / "root")) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".tmp-"))
          << scene.name << " at " << point << ": " << entry.path();
    }
  }

  void RunScene(const Scene& scene) {
    int points = 0;
    {
      const Scratch scratch;
      scene.before(scratch);
      const TracedRun whole = KillAtPoint([&] { return Live(scratch, scene.wanted); });
      ASSERT_FALSE(whole.was_killed);
      ASSERT_TRUE(whole.succeeded) << scene.name;
      points = whole.points;
    }
    ASSERT_GT(points, 20) << "ptrace saw too few calls";
    int kills = 0;
    for (int point = 0; point < points; point += StrideFor(points)) {
      const Scratch scratch;
      scene.before(scratch);
      const TracedRun run = KillAtPoint([&] { return Live(scratch, scene.wanted); }, point);
      kills += run.was_killed ? 1 : 0;  // a run may be some calls shorter than the first one
      ExpectWhole(scene, scratch, point);
      ASSERT_TRUE(Live(scratch, scene.wanted)) << scene.name << " at " << point;
      EXPECT_EQ(FilesBelow(stdfs::canonical(scratch / ("root/" + MountPath(kMount)))), scene.final)
          << scene.name << " at " << point;
      ExpectTidy(scene, scratch, point);
      if (HasFailure()) {
        return;
      }
    }
    EXPECT_GE(kills, std::min(points, 20));
    std::cout << scene.name << ": " << kills << " kills at " << points << " points\n";
  }

  const Files first_files_ = {{kIndexFile, "first"}, {kObjectFile, SharedObject("first")}};
  const Files second_files_ = {{"inductor/fxgraph/zz/fzzz/entry", "second"},
                               {kOutputFile, "def call(): pass"}};
  Scratch bundles_;
  bundle::LayoutStore store_;
  Digest first_;
  Digest second_;
};

TEST_F(CrashTest, FirstDirectoryAndFirstBundle) {
  RunScene({.name = "first",
            .before = [](const Scratch&) {},
            .wanted = {first_},
            .allowed = {{}, first_files_},
            .final = first_files_,
            .may_be_absent = true});
}

TEST_F(CrashTest, AdoptionOfWhatKubeletMade) {
  const Files pods = {{"inductor/early", "a pod's"}};
  RunScene({.name = "adoption",
            .before =
                [&](const Scratch& scratch) {
                  scratch.Write("root/" + MountPath(kMount) + "/inductor/early", "a pod's");
                },
            .wanted = {first_},
            .allowed = {pods, first_files_},
            .final = first_files_});
}

TEST_F(CrashTest, UpdateFromOneBundleToTheUnionOfTwo) {
  Files both = first_files_;
  both.insert(second_files_.begin(), second_files_.end());
  Files written = first_files_;
  written["inductor/locks/l.lock"] = "a pod's";
  RunScene({.name = "update",
            .before =
                [&](const Scratch& scratch) {
                  ASSERT_TRUE(Live(scratch, {first_}));
                  scratch.Write("root/" + MountPath(kMount) + "/inductor/locks/l.lock", "a pod's");
                },
            .wanted = {first_, second_},
            .allowed = {written, both},
            .final = both});
}

TEST_F(CrashTest, RepairOfADanglingLink) {
  RunScene({.name = "repair",
            .before =
                [&](const Scratch& scratch) {
                  stdfs::create_directories(scratch / ("root/" + MountParent(kMount)));
                  stdfs::create_symlink(LinkTarget(std::string(32, 'd')),
                                        scratch / ("root/" + MountPath(kMount)));
                },
            .wanted = {first_},
            // Dangling until the repair, which comes first: a kill before it may leave it so.
            .allowed = {{}, first_files_},
            .final = first_files_,
            .may_be_absent = true});
}

// Whatever the moment of the kill: the tag leads to a bundle that verifies, or there is none.
TEST_F(CrashTest, PublishingLeavesAWholeBundleOrNone) {
  const Scratch tree;
  for (const auto& [path, bytes] : first_files_) {
    tree.Write(path, bytes);
  }
  const std::string repository = "team/llama";
  const auto publish = [&](const Scratch& place) {
    bundle::LayoutStore store(place.path(), SystemClock());
    return PublishFrom(store, tree.path()).ok();
  };
  int points = 0;
  {
    const Scratch place;
    const TracedRun whole = KillAtPoint([&] { return publish(place); });
    ASSERT_TRUE(whole.succeeded);
    points = whole.points;
  }
  int kills = 0;
  for (int point = 0; point < points; point += StrideFor(points)) {
    const Scratch place;
    kills += KillAtPoint([&] { return publish(place); }, point).was_killed ? 1 : 0;
    bundle::LayoutStore store(place.path(), SystemClock());
    const auto tagged = store.ResolveTag(repository, "k-" + Request().key, {});
    if (tagged.ok()) {
      const bundle::Place from{store, repository};
      const auto bundle = bundle::ReadBundle(from, *tagged, {});
      ASSERT_TRUE(bundle.ok()) << point << bundle.status();
      EXPECT_TRUE(bundle::Verify(from, *bundle, nullptr, {}).ok()) << point;
    } else {
      EXPECT_TRUE(absl::IsNotFound(tagged.status())) << point << tagged.status();
    }
    const absl::StatusOr<Published> again = PublishFrom(store, tree.path());
    ASSERT_TRUE(again.ok()) << point << again.status();
    EXPECT_EQ(again->publication.digest, first_) << point;
  }
  std::cout << "publish: " << kills << " kills at " << points << " points\n";
}

TEST_F(CrashTest, TheJournalKnowsTheActiveTreeAfterAnyKill) {
  int points = 0;
  {
    const Scratch scratch;
    ASSERT_TRUE(Live(scratch, {first_}));
    points = KillAtPoint([&] { return Live(scratch, {second_}); }).points;
  }
  for (int point = 1; point < points; point += StrideFor(points)) {
    const Scratch scratch;
    ASSERT_TRUE(Live(scratch, {first_}));
    KillAtPoint([&] { return Live(scratch, {second_}); }, point);
    const fs::Dir root = *OpenRoot((scratch / "root").string());
    ASSERT_TRUE(SweepLeftovers(root).ok());
    ASSERT_TRUE(MendJournal(root, SystemClock().Now()).ok());
    const auto link = ScanLink(root, kMount);
    ASSERT_TRUE(link.ok() && link->has_value());
    const std::vector<Activation> past = ReadActivations(root, kMount);
    ASSERT_FALSE(past.empty());
    EXPECT_EQ(past.back().generation, (*link)->generation) << point;
  }
}

}  // namespace
}  // namespace cachewarm::agent
