// SPDX-License-Identifier: Apache-2.0
// Cuts the power at random points of a fetch, an activation, the sync behind it, an eviction with a
// second fetch, and a capture with its publication. What a disk may then hold is computed from the
// recorded system calls (disk_model.h), so a missing or early fsync shows. Invariants after the
// start of the agent with another boot id:
//   each tree that a link leads or can lead to is complete, or has no file of a bundle;
//   a tag and the record of a capture lead to a bundle that verifies.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "agent/steps/capturing/publication.h"
#include "agent/steps/fetching/fetch_generation.h"
#include "agent/sync/tree_names.h"
#include "agent/tree/durable.h"
#include "agent/tree/evict.h"
#include "agent/tree/journal.h"
#include "agent/tree/links.h"
#include "agent/tree/retire.h"
#include "agent/tree/root.h"
#include "agent/tree/root_layout.h"
#include "agent/tree/scan.h"
#include "lib/base/status.h"
#include "lib/bundle/store/layout/layout_store.h"
#include "lib/bundle/transfer.h"
#include "lib/fingerprint/key.h"
#include "tests/fakes/cache_files.h"
#include "tests/integration/agent/agent_run.h"
#include "tests/integration/agent/disk_log.h"
#include "tests/integration/agent/disk_model.h"
#include "tests/unit/agent/scratch.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;

using Files = std::map<std::string, std::string>;

const Mount kMount = TestMount();
const std::string kRepository = kMount.ns + "/" + kMount.name;

// CACHEWARM_POWER_CUTS=2000 sets the number of cuts in each operation.
int CutsPerOperation() {
  constexpr int kDefault = 200;
  const char* wanted = std::getenv("CACHEWARM_POWER_CUTS");
  return wanted == nullptr ? kDefault : std::max(1, std::atoi(wanted));
}

// Different in each run. CACHEWARM_CRASH_SEED repeats a run.
unsigned Seed() {
  const char* wanted = std::getenv("CACHEWARM_CRASH_SEED");
  return wanted == nullptr ? std::random_device()() : static_cast<unsigned>(std::atoll(wanted));
}

RootUser InBoot(const std::string& boot_id) {
  return {.node = std::string("cpu\n") + kTestCpuClass + "\n", .boot_id = boot_id};
}

PrepareOptions Options() {
  return {.folders = caches::CacheTable::AllPresets().Directories(), .now = SystemClock().Now()};
}

absl::StatusOr<int> StartAgent(const fs::Dir& root, const std::string& boot_id) {
  CW_RETURN_IF_ERROR(SweepLeftovers(root));
  CW_RETURN_IF_ERROR(RepairJournal(root, SystemClock().Now()));
  CW_RETURN_IF_ERROR(RemoveEmptyFolders(root));
  return RetireForeignTrees(root, InBoot(boot_id), Options());
}

// The events of one operation in the log.
struct Operation {
  std::string name;
  size_t begin = 0;
  size_t end = 0;
};

class PowerCutTest : public ::testing::Test {
 protected:
  PowerCutTest()
      : root_(*OpenRoot(scene_.path() + "/root")), store_(StorePath(scene_), SystemClock()) {
    std::cout << "CACHEWARM_CRASH_SEED=" << seed_ << '\n';
    EXPECT_TRUE(StartAgent(root_, "boot-1").ok());
    EXPECT_TRUE(PrepareMount(root_, kMount, Options()).ok());
    first_ = Publish(first_files_);
    second_ = Publish(second_files_);
    first_tree_ = GenerationId(kMount, {first_});
    second_tree_ = GenerationId(kMount, {second_});
    EXPECT_TRUE(Fetch(first_));
    EXPECT_TRUE(Activate(first_tree_));
    EXPECT_TRUE(Sync(first_tree_));
    RecordAll();
  }

  static std::string StorePath(const Scratch& place) {
    stdfs::create_directories(place / "store");
    return (place / "store").string();
  }

  static api::CaptureRequest Request() {
    api::CaptureRequest request{
        .id = "pod-1",
        .warmup_uid = kMount.uid,
        .run_as = kMount.run_as,
        .factors = {
            .gpu_type = "cpu", .cpu_class = kTestCpuClass, .image = "llama:1", .container = "c"}};
    request.key = *fingerprint::KeyOf(request.factors);
    return request;
  }

  Digest Publish(const Files& files) {
    const Scratch tree;
    for (const auto& [path, bytes] : files) {
      tree.Write(path, bytes);
    }
    const fs::Dir dir = *fs::Dir::Open(tree.path());
    fingerprint::NodeFacts node;
    node.gpu_type = "cpu";
    node.cpu_class = kTestCpuClass;
    const auto published = PublishTree({.store = store_,
                                        .tree = dir,
                                        .table = caches::CacheTable::AllPresets(),
                                        .node = node,
                                        .request = Request(),
                                        .ns = kMount.ns,
                                        .name = kMount.name,
                                        .used = {.all = true}},
                                       {});
    EXPECT_TRUE(published.ok()) << published.status();
    return published->publication.digest;
  }

  bool Fetch(const Digest& digest) {
    const auto outcome =
        FetchGeneration({.store = store_,
                         .root = root_,
                         .table = caches::CacheTable::AllPresets(),
                         .clock = SystemClock(),
                         .step = {.mount = kMount,
                                  .generation = GenerationId(kMount, {digest}),
                                  .bundles = {{.key = "k", .digest = digest, .bytes = 1}},
                                  .sources = {first_tree_}},
                         .gpu_type = "cpu",
                         .cpu_class = kTestCpuClass},
                        {});
    return std::holds_alternative<Fetched>(outcome);
  }
  bool Activate(const std::string& generation) {
    return ActivateGeneration(root_, kMount, generation, Options()).ok();
  }
  bool Sync(const std::string& generation) {
    return MakeDurable({.root = root_, .generation = generation}, {}).ok();
  }
  bool EvictAndFetchAgain() {
    return Activate(first_tree_) &&
           Evict(root_, {.name = second_tree_, .warmup_uid = kMount.uid, .run_as = kMount.run_as})
               .ok() &&
           Fetch(second_) && Activate(second_tree_);
  }
  bool Capture() {
    const Digest digest = Publish({{kIndexFile, "third"}, {kObjectFile, SharedObject("third")}});
    return WriteCaptureRecord(
               root_, {.id = "pod-1", .state = api::CaptureState::kPushed, .digest = digest})
        .ok();
  }

  void RecordAll() {
    DiskRecorder recorder(scene_.path());
    const auto record = [&](const std::string& name, const std::function<bool()>& work) {
      const size_t begin = recorder.log().events.size();
      EXPECT_TRUE(work()) << name;
      operations_.push_back({name, begin, recorder.log().events.size()});
    };
    record("fetch", [&] { return Fetch(second_); });
    record("activate", [&] { return Activate(second_tree_); });
    record("sync", [&] { return Sync(second_tree_); });
    record("evict", [&] { return EvictAndFetchAgain(); });
    record("capture", [&] { return Capture(); });
    log_ = recorder.log();
  }

  // Returns what is wrong with a tree of a bundle; empty: nothing.
  std::string ProblemOf(const Scratch& disk, const std::string& generation) const {
    const Files& wanted = generation == first_tree_ ? first_files_ : second_files_;
    return GenerationFiles(disk / "root", generation) == wanted
               ? ""
               : "tree " + generation + " is incomplete or has a wrong byte";
  }

  std::string ProblemOfTrees(const Scratch& disk) const {
    const absl::StatusOr<fs::Dir> root = OpenRoot((disk / "root").string());
    if (!root.ok()) {
      return root.status().ToString();
    }
    if (const absl::StatusOr<int> retired = StartAgent(*root, "boot-2"); !retired.ok()) {
      return retired.status().ToString();
    }
    // Twice, as the sync loop does: the first call repairs the link, the second one the mode of its
    // tree.
    for (int pass = 0; pass < 2; ++pass) {
      if (const absl::Status prepared = PrepareMount(*root, kMount, Options()); !prepared.ok()) {
        return prepared.ToString();
      }
    }
    const absl::StatusOr<Inventory> inventory = ScanInventory(*root);
    if (!inventory.ok() || !inventory->links.contains(kMount) ||
        inventory->links.at(kMount).state != LinkState::kActive) {
      return "the mount is not usable";
    }
    for (const auto& [id, tree] : inventory->generations) {
      std::string problem = IsColdId(id) ? std::string() : ProblemOf(disk, id);
      if (!problem.empty()) {
        return problem;
      }
    }
    return "";
  }

  static std::string ProblemOfBundle(bundle::Store& store, const Digest& digest) {
    const bundle::RepositoryRef from{store, kRepository};
    const auto found = bundle::ReadBundle(from, digest, {});
    const absl::Status whole = found.ok() ? bundle::Verify(from, *found, {}, {}) : found.status();
    return whole.ok() ? "" : "bundle " + digest.Short() + ": " + whole.ToString();
  }

  static std::string ProblemOfStore(const Scratch& disk) {
    bundle::LayoutStore store(StorePath(disk), SystemClock());
    const auto tagged = store.ResolveTag(kRepository, "k-" + Request().key, {});
    if (!tagged.ok()) {
      return "the tag of a durable bundle is gone: " + tagged.status().ToString();
    }
    std::string problem = ProblemOfBundle(store, *tagged);
    for (const api::CaptureStatus& capture :
         ReadCaptureRecords(*OpenRoot((disk / "root").string()))) {
      if (problem.empty()) {
        problem = ProblemOfBundle(store, capture.digest);
      }
    }
    return problem;
  }

  // Returns what is wrong after one power cut; empty: nothing.
  std::string ProblemAfter(const DiskLog& log, const PowerCut& cut) const {
    const Scratch disk;
    MakeDiskAfter(log, cut, disk.path());
    std::string problem = ProblemOfTrees(disk);
    return problem.empty() ? ProblemOfStore(disk) : problem;
  }

  // Returns the number of cuts with a problem, and the first problem.
  std::pair<int, std::string> CutAll(const DiskLog& log, const Operation& operation, int cuts) {
    std::pair<int, std::string> found;
    for (int i = 0; i < cuts; ++i) {
      const PowerCut cut{.at = operation.begin + random_() % (operation.end - operation.begin + 1),
                         .seed = static_cast<unsigned>(random_())};
      const std::string problem = ProblemAfter(log, cut);
      if (!problem.empty() && found.first++ == 0) {
        found.second = "at event " + std::to_string(cut.at) + ", seed " + std::to_string(cut.seed) +
                       ": " + problem;
      }
    }
    return found;
  }

  const Operation& Of(const std::string& name) const {
    return *std::find_if(operations_.begin(), operations_.end(),
                         [&](const auto& each) { return each.name == name; });
  }

  const unsigned seed_ = Seed();
  std::minstd_rand random_{seed_};
  const Files first_files_ = {{kIndexFile, "first"}, {kObjectFile, SharedObject("first")}};
  const Files second_files_ = {{kIndexFile, "first"},
                               {"inductor/fxgraph/zz/fzzz/entry", std::string(9000, 's')},
                               {kObjectFile, SharedObject("second")},
                               {kOutputFile, "def call(): pass"}};
  const Scratch scene_;
  const fs::Dir root_;
  bundle::LayoutStore store_;
  Digest first_;
  Digest second_;
  std::string first_tree_;
  std::string second_tree_;
  DiskLog log_;
  std::vector<Operation> operations_;
};

TEST_F(PowerCutTest, LeavesNoActiveTreeWithAWrongByteAndNoPartialBundle) {
  for (const Operation& operation : operations_) {
    ASSERT_GT(operation.end, operation.begin + 5) << operation.name << ": no calls were recorded";
    const auto [problems, first] = CutAll(log_, operation, CutsPerOperation());
    EXPECT_EQ(problems, 0) << operation.name << " " << first;
    std::cout << operation.name << ": " << CutsPerOperation() << " cuts among "
              << operation.end - operation.begin << " events\n";
  }
}

TEST_F(PowerCutTest, WithoutTheAgentsCheckOfTheBootATreeWouldBeIncomplete) {
  // The disk after the activation, if nothing more is written.
  bool was_incomplete = false;
  for (unsigned seed = 1; seed <= 40 && !was_incomplete; ++seed) {
    const Scratch disk;
    MakeDiskAfter(log_, {.at = Of("activate").end, .seed = seed}, disk.path());
    was_incomplete = stdfs::is_directory(disk / ("root/" + GenerationPath(second_tree_))) &&
                     !ProblemOf(disk, second_tree_).empty();
  }
  EXPECT_TRUE(was_incomplete);
}

// The model finds what it is there for: faults in the order of the calls.
class PlantedFault : public PowerCutTest {
 protected:
  // Returns the log without the syncs of nodes of this type.
  DiskLog WithoutSyncsOf(DiskNode::Type type) const {
    DiskLog log = log_;
    for (DiskEvent& event : log.events) {
      if (event.kind == DiskEvent::Kind::kSync &&
          log.nodes[static_cast<size_t>(event.node)].type == type) {
        event = {.kind = DiskEvent::Kind::kName, .node = 0};
      }
    }
    return log;
  }
};

TEST_F(PlantedFault, MissingSyncsOfFilesAreFound) {
  const DiskLog log = WithoutSyncsOf(DiskNode::Type::kFile);
  const Operation evict{"evict", Of("sync").end, Of("sync").end + 1};
  EXPECT_GT(CutAll(log, evict, 60).first, 0);
}

TEST_F(PlantedFault, MissingSyncsOfDirectoriesAreFound) {
  const DiskLog log = WithoutSyncsOf(DiskNode::Type::kDirectory);
  EXPECT_GT(CutAll(log, Of("capture"), 100).first, 0);
}

TEST_F(PlantedFault, MarkBeforeTheSyncsIsFound) {
  // Moves the events that write the mark to the begin of the sync.
  const Operation sync = Of("sync");
  DiskLog log = log_;
  const auto begin = log.events.begin();
  const auto is_mark_made = [&](const DiskEvent& event) {
    return event.kind == DiskEvent::Kind::kName && event.name.starts_with(".tmp-");
  };
  const auto mark = std::find_if(begin + static_cast<ptrdiff_t>(sync.begin),
                                 begin + static_cast<ptrdiff_t>(sync.end), is_mark_made);
  ASSERT_NE(mark, begin + static_cast<ptrdiff_t>(sync.end));
  const auto mark_events = begin + static_cast<ptrdiff_t>(sync.end) - mark;
  std::rotate(begin + static_cast<ptrdiff_t>(sync.begin), mark,
              begin + static_cast<ptrdiff_t>(sync.end));
  const Operation early{"early mark", sync.begin + static_cast<size_t>(mark_events),
                        sync.begin + static_cast<size_t>(mark_events) + 1};
  EXPECT_GT(CutAll(log, early, 60).first, 0);
}

}  // namespace
}  // namespace cachewarm::agent
