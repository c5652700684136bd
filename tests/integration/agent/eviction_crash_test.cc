// SPDX-License-Identifier: Apache-2.0
// Kills an eviction, and the start after a reboot on other hardware, before and after every system
// call that changes the file system, checks the disk as a starting container sees it, and lets a
// restarted agent finish. Invariants after any kill:
//   a link leads to a complete tree: it never dangles, and no active tree has lost a file;
//   the next process ends with the same disk as one that was not killed.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "agent/sync/tree_names.h"
#include "agent/tree/evict.h"
#include "agent/tree/journal.h"
#include "agent/tree/links.h"
#include "agent/tree/retire.h"
#include "agent/tree/root.h"
#include "agent/tree/root_layout.h"
#include "agent/tree/scan.h"
#include "tests/integration/agent/kill_at_call.h"
#include "tests/unit/agent/scratch.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;

const Mount kMount{"team", "llama", "uid-1", "image"};
const std::map<std::string, std::string> kActiveFiles = {{"inductor/f", "active"}};

WallTime At(int second) {
  return WallTime(std::chrono::seconds(1'700'000'000 + second));
}

bool Activate(const fs::Dir& root, const std::string& id, int second) {
  return WriteGenerationRecord(root, {.id = id, .mount = kMount, .digests = {DigestOf(id)}}, {})
             .ok() &&
         ActivateGeneration(root, kMount, id, {.now = At(second)}).ok();
}

// An older tree of two files, and an active one.
struct Scene {
  Scene() : root(*OpenRoot((scratch / "root").string())) {
    scratch.Write("root/" + GenerationPath(older) + "/inductor/a", "old");
    scratch.Write("root/" + GenerationPath(older) + "/inductor/b", "old");
    scratch.Write("root/" + GenerationPath(active) + "/inductor/f", "active");
    EXPECT_TRUE(Activate(root, older, 10));
    EXPECT_TRUE(Activate(root, active, 20));
  }

  std::map<std::string, std::string> Mounted() const {
    const stdfs::path mount = scratch / ("root/" + MountPath(kMount));
    std::error_code error;
    return stdfs::is_directory(mount, error) ? MountedFiles(scratch / "root", kMount)
                                             : std::map<std::string, std::string>{};
  }
  bool HasLink() const { return scratch.Exists("root/" + MountPath(kMount)); }
  bool IsEmpty(std::string_view folder) const {
    return stdfs::is_empty(scratch / ("root/" + std::string(folder)));
  }

  Scratch scratch;
  const std::string older = GenerationId(kMount, {DigestOf("older")});
  const std::string active = GenerationId(kMount, {DigestOf("active")});
  fs::Dir root;
};

// Starts like the agent, evicts every tree without a link, and with `is_gone` those with a link.
bool Run(const Scene& scene, bool is_gone) {
  const absl::StatusOr<fs::Dir> root = OpenRoot((scene.scratch / "root").string());
  if (!root.ok() || !SweepLeftovers(*root).ok() || !RepairJournal(*root, At(30)).ok() ||
      !RemoveEmptyFolders(*root).ok()) {
    return false;
  }
  const absl::StatusOr<Inventory> inventory = ScanInventory(*root);
  if (!inventory.ok()) {
    return false;
  }
  std::set<std::string> linked;
  for (const auto& [mount, link] : inventory->links) {
    linked.insert(link.generation);
    if (is_gone && !Evict(*root, {.name = link.generation,
                                  .link = mount,
                                  .warmup_uid = mount.uid,
                                  .run_as = mount.run_as})
                        .ok()) {
      return false;
    }
  }
  for (const auto& [name, tree] : inventory->generations) {
    if (!linked.contains(name) &&
        !Evict(*root, {.name = name, .warmup_uid = tree.warmup_uid, .run_as = tree.run_as}).ok()) {
      return false;
    }
  }
  while (true) {
    const absl::StatusOr<bool> is_empty = EmptyTrash(*root, 2);
    if (!is_empty.ok() || *is_empty) {
      return is_empty.ok();
    }
  }
}

// Kills the eviction at every point and calls `check` after the kill and `final` after the restart.
void KillEverywhere(bool is_gone, const std::function<void(const Scene&)>& check,
                    const std::function<void(const Scene&)>& final) {
  int points = 0;
  {
    const Scene scene;
    const TracedRun whole = KillAtPoint([&] { return Run(scene, is_gone); });
    ASSERT_TRUE(whole.succeeded);
    points = whole.points;
    final(scene);
  }
  ASSERT_GT(points, 10) << "ptrace saw too few calls";
  for (int point = 0; point < points && !::testing::Test::HasFailure(); ++point) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, point);
    const Scene scene;
    KillAtPoint([&] { return Run(scene, is_gone); }, point);
    check(scene);
    ASSERT_TRUE(Run(scene, is_gone));
    final(scene);
  }
}

TEST(EvictionCrash, AnUnlinkedTreeGoesAndTheActiveOneStaysWhole) {
  const auto is_whole = [](const Scene& scene) { EXPECT_EQ(scene.Mounted(), kActiveFiles); };
  KillEverywhere(false, is_whole, [&](const Scene& scene) {
    is_whole(scene);
    EXPECT_FALSE(scene.scratch.Exists("root/" + GenerationPath(scene.older)));
    EXPECT_FALSE(scene.scratch.Exists("root/" + GenerationRecordPath(scene.older)));
    EXPECT_TRUE(scene.scratch.Exists("root/" + GenerationRecordPath(scene.active)));
    EXPECT_TRUE(scene.IsEmpty(kTrash));
  });
}

TEST(EvictionCrash, ADeletedWarmupLeavesNothingAndItsLinkNeverDangles) {
  KillEverywhere(
      true,
      [](const Scene& scene) {
        if (scene.HasLink()) {
          EXPECT_EQ(scene.Mounted(), kActiveFiles);
        }
      },
      [](const Scene& scene) {
        EXPECT_FALSE(scene.scratch.Exists("root/" + kMount.ns));
        for (const std::string_view folder :
             {kGenerations, kTrash, kStaging, kGenerationRecords, kLinkRecords}) {
          EXPECT_TRUE(scene.IsEmpty(folder)) << folder;
        }
      });
}

// Starts like the agent after a reboot of the machine with another processor.
bool StartOnOtherHardware(const Scene& scene) {
  const absl::StatusOr<fs::Dir> root = OpenRoot((scene.scratch / "root").string());
  return root.ok() && RetireForeignTrees(*root, {.node = "cpu\navx2\n", .boot_id = "boot-2"},
                                         {.folders = {"inductor"}, .now = At(40)})
                          .ok();
}

// The container started before the agent: it has mounted the directory of the active tree.
TEST(RebootCrash, AContainerFindsAnEmptyDirectoryAndTheLinkNeverDangles) {
  int points = 1;
  for (int point = -1; point < points && !::testing::Test::HasFailure(); ++point) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, point);
    const Scene scene;
    scene.scratch.Write("root/.state/node", "cpu\navx512\nboot-1\n");
    const fs::Dir container = *scene.root.OpenDir(GenerationPath(scene.active));
    if (point < 0) {
      const TracedRun whole = KillAtPoint([&] { return StartOnOtherHardware(scene); });
      ASSERT_TRUE(whole.succeeded);
      points = whole.points;
    } else {
      KillAtPoint([&] { return StartOnOtherHardware(scene); }, point);
      EXPECT_TRUE(stdfs::is_directory(scene.scratch / ("root/" + MountPath(kMount))));
      ASSERT_TRUE(StartOnOtherHardware(scene));
    }
    EXPECT_TRUE(scene.Mounted().empty());
    EXPECT_FALSE(*container.Exists("inductor/f"));
    EXPECT_TRUE(*container.Exists("inductor")) << "it can write its own files";
  }
  EXPECT_GT(points, 10) << "ptrace saw too few calls";
}

}  // namespace
}  // namespace cachewarm::agent
