// SPDX-License-Identifier: Apache-2.0
// Kills the agent's steps at every system call, of any thread, that changes the file system; checks
// the disk as a starting container sees it; restarts the agent, and checks again. Invariants after
// any kill:
//   the path that pods mount leads to a directory: the complete old tree or the complete new one;
//   no tree that was ever active has changed;
//   the next process reaches the same result as one that was not killed, and leaves no extra files.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "agent/steps/capturing/publication.h"
#include "agent/sync/tree_names.h"
#include "agent/tree/journal.h"
#include "agent/tree/root.h"
#include "agent/tree/root_layout.h"
#include "agent/tree/scan.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/store/layout/layout_store.h"
#include "lib/bundle/transfer.h"
#include "lib/fingerprint/key.h"
#include "tests/fakes/cache_files.h"
#include "tests/integration/agent/agent_run.h"
#include "tests/integration/agent/kill_at_call.h"
#include "tests/unit/agent/scratch.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;

using Files = std::map<std::string, std::string>;

const Mount kMount = TestMount();

fingerprint::NodeFacts NodeFacts(const std::string& gpu_type) {
  fingerprint::NodeFacts facts;
  facts.gpu_type = gpu_type;
  facts.cpu_class = kTestCpuClass;
  return facts;
}

api::CaptureRequest Request(const std::string& gpu_type = "cpu") {
  api::CaptureRequest request{
      .id = "pod-1",
      .warmup_uid = kMount.uid,
      .run_as = kMount.run_as,
      .factors = {
          .gpu_type = gpu_type, .cpu_class = kTestCpuClass, .image = "llama:1", .container = "c"}};
  request.key = *fingerprint::KeyOf(request.factors);
  return request;
}

absl::StatusOr<Published> PublishFrom(bundle::Store& store, const std::string& directory,
                                      const std::string& gpu_type = "cpu") {
  const absl::StatusOr<fs::Dir> tree = fs::Dir::Open(directory);
  if (!tree.ok()) {
    return tree.status();
  }
  const fingerprint::NodeFacts node = NodeFacts(gpu_type);
  return PublishTree({.store = store,
                      .tree = *tree,
                      .table = caches::CacheTable::AllPresets(),
                      .node = node,
                      .request = Request(gpu_type),
                      .ns = kMount.ns,
                      .name = kMount.name,
                      .used = {.all = true}},
                     {});
}

// State of the disk before a kill (created again for each kill), and expected results.
struct Scene {
  std::string name;
  std::function<void(const Scratch&)> before;  // the root, below "root"
  std::vector<Digest> wanted;
  std::vector<Files> allowed;  // possible contents of the mount after a kill
  Files final;                 // contents of the mount in the end
  bool may_be_absent = false;  // the mount did not exist before, or was a dangling link
  std::function<void(const Scratch&)> after = {};  // checks more conditions in the end
};

// Tests every point. CACHEWARM_CRASH_POINTS=30 limits a scene to that many, evenly spread.
int StrideFor(int points) {
  const char* wanted = std::getenv("CACHEWARM_CRASH_POINTS");
  const int count = wanted == nullptr ? 0 : std::atoi(wanted);
  return count <= 0 ? 1 : std::max(1, points / count);
}

// Returns a different seed in each run, so that different runs test different points.
// CACHEWARM_CRASH_SEED repeats a run.
unsigned Seed() {
  const char* wanted = std::getenv("CACHEWARM_CRASH_SEED");
  return wanted == nullptr ? std::random_device()() : static_cast<unsigned>(std::atoll(wanted));
}

class CrashTest : public ::testing::Test {
 protected:
  CrashTest() : store_(bundles_.path(), SystemClock()) {
    std::cout << repeat_ << '\n';
    first_ = Publish(first_files_);
    second_ = Publish(second_files_);
  }

  Digest Publish(const Files& files, const std::string& gpu_type = "cpu") {
    const Scratch tree;
    for (const auto& [path, bytes] : files) {
      tree.Write(path, bytes);
    }
    const absl::StatusOr<Published> published = PublishFrom(store_, tree.path(), gpu_type);
    EXPECT_TRUE(published.ok()) << published.status();
    return published->publication.digest;
  }

  // Changes the last byte of the bundle's layer in the store.
  void DamageLayerOf(const Digest& digest) {
    const auto bundle = bundle::ReadBundle({store_, kMount.ns + "/" + kMount.name}, digest, {});
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    const std::string name = bundle->manifest.layers.at(0).digest.hex();
    for (const auto& [path, bytes] : FilesBelow(bundles_.path())) {
      if (path.ends_with(name)) {
        std::string damaged = bytes;
        damaged.back() = static_cast<char>(damaged.back() ^ 1);
        stdfs::permissions(bundles_ / path, stdfs::perms::owner_write, stdfs::perm_options::add);
        bundles_.Write(path, damaged);
        return;
      }
    }
    FAIL() << "the store has no " << name;
  }

  static void ExpectQuarantined(const Scratch& scratch, const Digest& digest) {
    const fs::Dir root = *OpenRoot((scratch / "root").string());
    const std::vector<QuarantinedBundle> bundles = ReadQuarantinedBundles(root);
    ASSERT_EQ(bundles.size(), 1U);
    EXPECT_EQ(bundles[0].name.digest, digest);
  }

  bool RunAgent(const Scratch& scratch, const std::vector<Digest>& wanted) {
    return RunAgentOnce((scratch / "root").string(), store_, wanted);
  }

  // Checks the mount as a container that starts now sees it.
  static void ExpectWhole(const Scene& scene, const Scratch& scratch, int point) {
    const stdfs::path mount = scratch / ("root/" + MountPath(kMount));
    std::error_code error;
    if (scene.may_be_absent && !stdfs::exists(mount, error)) {
      return;
    }
    ASSERT_TRUE(stdfs::is_directory(mount, error))
        << scene.name << " at " << point << ": the mount is dangling";
    const Files shown = MountedFiles(scratch / "root", kMount);
    EXPECT_NE(std::find(scene.allowed.begin(), scene.allowed.end(), shown), scene.allowed.end())
        << scene.name << " at " << point << ": neither the old tree nor the new one";
  }

  // Every file of the store that is named by a digest has this digest.
  static void ExpectWholeBlobs(const Scratch& place, int point) {
    for (const auto& [path, bytes] : FilesBelow(place.path())) {
      const std::string name = stdfs::path(path).filename().string();
      if (name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string::npos) {
        EXPECT_EQ(DigestOf(bytes).hex(), name) << point << ": " << path;
      }
    }
  }

  // Changes the content but not size and mtime, as a failing disk does.
  static void Rot(const stdfs::path& path) {
    const auto written = stdfs::last_write_time(path);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.put('~');
    file.close();
    stdfs::last_write_time(path, written);
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
      const TracedRun whole = KillAtPoint([&] { return RunAgent(scratch, scene.wanted); });
      ASSERT_FALSE(whole.was_killed);
      ASSERT_TRUE(whole.succeeded) << scene.name;
      points = whole.points;
    }
    ASSERT_GT(points, 20) << "ptrace saw too few calls";
    int kills = 0;
    for (const int point : PointsOf(points)) {
      const Scratch scratch;
      scene.before(scratch);
      const TracedRun run = KillAtPoint([&] { return RunAgent(scratch, scene.wanted); }, point);
      kills += run.was_killed ? 1 : 0;  // a run may have fewer calls than the first one
      ExpectWhole(scene, scratch, point);
      ASSERT_TRUE(RunAgent(scratch, scene.wanted)) << scene.name << " at " << point;
      EXPECT_EQ(MountedFiles(scratch / "root", kMount), scene.final)
          << scene.name << " at " << point;
      ExpectTidy(scene, scratch, point);
      if (scene.after) {
        scene.after(scratch);
      }
      if (HasFailure()) {
        return;
      }
    }
    EXPECT_GE(kills, std::min(points, 15));
    std::cout << scene.name << ": " << kills << " kills at " << points << " points\n";
  }

  // Selects the points at which runs are killed.
  std::vector<int> PointsOf(int points) {
    const int stride = StrideFor(points);
    std::vector<int> chosen;
    for (int point = static_cast<int>(random_() % static_cast<unsigned>(stride)); point < points;
         point += stride) {
      chosen.push_back(point);
    }
    return chosen;
  }

  const unsigned seed_ = Seed();
  const std::string repeat_ = fmt::format("CACHEWARM_CRASH_SEED={}", seed_);
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__, repeat_};
  std::minstd_rand random_{seed_};
  const Files first_files_ = {{kIndexFile, "first"}, {kObjectFile, SharedObject("first")}};
  const Files second_files_ = {{"inductor/fxgraph/zz/fzzz/entry", "second"},
                               {kOutputFile, "def call(): pass"}};
  Scratch bundles_;
  bundle::LayoutStore store_;
  Digest first_;
  Digest second_;
};

TEST_F(CrashTest, FirstBundleIsActivated) {
  RunScene({.name = "first",
            .before = [](const Scratch&) {},
            .wanted = {first_},
            .allowed = {{}, first_files_},
            .final = first_files_,
            .may_be_absent = true});
}

TEST_F(CrashTest, KubeletDirectoryIsAdopted) {
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

TEST_F(CrashTest, BundleIsUpdatedToUnionOfTwo) {
  Files both = first_files_;
  both.insert(second_files_.begin(), second_files_.end());
  Files written = first_files_;
  written["inductor/locks/l.lock"] = "a pod's";
  RunScene({.name = "update",
            .before =
                [&](const Scratch& scratch) {
                  ASSERT_TRUE(RunAgent(scratch, {first_}));
                  scratch.Write("root/" + MountPath(kMount) + "/inductor/locks/l.lock", "a pod's");
                },
            .wanted = {first_, second_},
            .allowed = {written, both},
            .final = both});
}

TEST_F(CrashTest, DanglingLinkIsRepaired) {
  RunScene({.name = "repair",
            .before =
                [&](const Scratch& scratch) {
                  stdfs::create_directories(scratch / ("root/" + MountParent(kMount)));
                  stdfs::create_symlink(LinkTarget(std::string(32, 'd')),
                                        scratch / ("root/" + MountPath(kMount)));
                },
            .wanted = {first_},
            // A kill before the repair, which is the first step, leaves the link dangling.
            .allowed = {{}, first_files_},
            .final = first_files_,
            .may_be_absent = true});
}

TEST_F(CrashTest, DamagedTreeIsReplacedForGood) {
  Files rotten = first_files_;
  rotten[kIndexFile] = "~irst";
  RunScene({.name = "scrub",
            .before =
                [&](const Scratch& scratch) {
                  ASSERT_TRUE(RunAgent(scratch, {first_}));
                  Rot(scratch / ("root/" + MountPath(kMount) + "/" + kIndexFile));
                },
            .wanted = {first_},
            .allowed = {rotten, {}, first_files_},
            .final = first_files_});
}

TEST_F(CrashTest, StampUpdateLosesNoRecord) {
  const std::string tree = GenerationId(kMount, {first_});
  RunScene({.name = "stamps",
            .before =
                [&](const Scratch& scratch) {
                  ASSERT_TRUE(RunAgent(scratch, {first_}));
                  stdfs::create_hard_link(
                      scratch / ("root/" + MountPath(kMount) + "/" + kIndexFile),
                      scratch / "elsewhere");
                },
            .wanted = {first_},
            .allowed = {first_files_},
            .final = first_files_,
            .after =
                [&](const Scratch& scratch) {
                  const fs::Dir root = *OpenRoot((scratch / "root").string());
                  const auto entries = ReadEntryRecords(root, tree);
                  ASSERT_TRUE(entries.ok()) << entries.status();
                  EXPECT_EQ(entries->size(), first_files_.size());
                  const auto record = ReadScrubRecord(root, tree);
                  ASSERT_TRUE(record.ok()) << record.status();
                  EXPECT_EQ(record->checked, record->entries);
                }});
}

TEST_F(CrashTest, RejectedBundleStaysQuarantinedAndTreeUnchanged) {
  const Digest foreign = Publish(second_files_, "nvidia/h100-80gb-hbm3/sm_90");
  RunScene({.name = "refused",
            .before = [&](const Scratch& scratch) { ASSERT_TRUE(RunAgent(scratch, {first_})); },
            .wanted = {foreign},
            .allowed = {first_files_},
            .final = first_files_,
            .after = [&](const Scratch& scratch) { ExpectQuarantined(scratch, foreign); }});
}

TEST_F(CrashTest, DamagedBundleStaysQuarantinedAndTreeUnchanged) {
  DamageLayerOf(second_);
  RunScene({.name = "damaged",
            .before = [&](const Scratch& scratch) { ASSERT_TRUE(RunAgent(scratch, {first_})); },
            .wanted = {first_, second_},
            .allowed = {first_files_},
            .final = first_files_,
            .after = [&](const Scratch& scratch) { ExpectQuarantined(scratch, second_); }});
}

// After any kill, the tag leads to a bundle that verifies, or does not exist.
TEST_F(CrashTest, PublishLeavesWholeBundleOrNone) {
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
  for (const int point : PointsOf(points)) {
    const Scratch place;
    kills += KillAtPoint([&] { return publish(place); }, point).was_killed ? 1 : 0;
    ExpectWholeBlobs(place, point);
    bundle::LayoutStore store(place.path(), SystemClock());
    const auto tagged = store.ResolveTag(repository, "k-" + Request().key, {});
    if (tagged.ok()) {
      const bundle::RepositoryRef from{store, repository};
      const auto bundle = bundle::ReadBundle(from, *tagged, {});
      ASSERT_TRUE(bundle.ok()) << point << bundle.status();
      EXPECT_TRUE(bundle::Verify(from, *bundle, {}, {}).ok()) << point;
    } else {
      EXPECT_TRUE(absl::IsNotFound(tagged.status())) << point << tagged.status();
    }
    const absl::StatusOr<Published> again = PublishFrom(store, tree.path());
    ASSERT_TRUE(again.ok()) << point << again.status();
    EXPECT_EQ(again->publication.digest, first_) << point;
    ExpectWholeBlobs(place, point);
  }
  std::cout << "publish: " << kills << " kills at " << points << " points\n";
}

TEST_F(CrashTest, JournalMatchesActiveTreeAfterKill) {
  int points = 0;
  {
    const Scratch scratch;
    ASSERT_TRUE(RunAgent(scratch, {first_}));
    points = KillAtPoint([&] { return RunAgent(scratch, {second_}); }).points;
  }
  for (const int point : PointsOf(points)) {
    const Scratch scratch;
    ASSERT_TRUE(RunAgent(scratch, {first_}));
    KillAtPoint([&] { return RunAgent(scratch, {second_}); }, point);
    const fs::Dir root = *OpenRoot((scratch / "root").string());
    ASSERT_TRUE(SweepLeftovers(root).ok());
    ASSERT_TRUE(RepairJournal(root, SystemClock().Now()).ok());
    const auto link = ScanLink(root, kMount);
    ASSERT_TRUE(link.ok() && link->has_value());
    const std::vector<Activation> past = ReadActivations(root, kMount);
    ASSERT_FALSE(past.empty());
    EXPECT_EQ(past.back().generation, (*link)->generation) << point;
  }
}

}  // namespace
}  // namespace cachewarm::agent
