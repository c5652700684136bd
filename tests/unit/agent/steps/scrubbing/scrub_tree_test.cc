// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/scrubbing/scrub_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/sync/tree_names.h"
#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;
using std::chrono::seconds;
using Files = std::map<std::string, std::string>;

const std::string kNinjaFile = "torch_extensions/ext/build.ninja";
const std::string kNinjaObject = "torch_extensions/ext/ext.so";
const std::string kKernel = "deepgemm/cache/kernel.a.1/kernel.cubin";
const std::string kKernelSource = "deepgemm/cache/kernel.a.1/kernel.cu";

class ScrubTreeTest : public ::testing::Test, protected Workbench {
 protected:
  // Fetches a tree of `bundles`. Returns its id.
  std::string Fetch(const std::vector<Files>& bundles) {
    digests_.clear();
    for (const Files& files : bundles) {
      const auto published = PublishFiles(files);
      EXPECT_TRUE(published.ok()) << published.status();
      digests_.push_back(published->publication.digest);
    }
    return FetchAgain(0);
  }
  // Fetches another tree of the same bundles.
  std::string FetchAgain(int attempt) {
    agent::Fetch step = FetchOf(digests_);
    step.generation = GenerationId(kMount, digests_, 0, attempt);
    EXPECT_TRUE(std::holds_alternative<Fetched>(RunFetch(step)));
    return step.generation;
  }
  std::string Fetch() { return Fetch({files_}); }

  absl::StatusOr<Scrubbed> Run(const std::string& generation, std::stop_token stop = {}) {
    return ScrubTree({.root = root_.dir(),
                      .watcher = watcher_,
                      .store = store_,
                      .table = caches::CacheTable::AllPresets(),
                      .clock = clock_,
                      .generation = generation,
                      .damaged = damaged_,
                      .pace = pace_},
                     std::move(stop));
  }
  // Scrubs a tree; the pass must not fail.
  Scrubbed Scrub(const std::string& generation) {
    const auto scrubbed = Run(generation);
    EXPECT_TRUE(scrubbed.ok()) << scrubbed.status();
    return scrubbed.ok() ? *scrubbed : Scrubbed();
  }

  stdfs::path PathOf(const std::string& generation, const std::string& file) {
    return root_ / (GenerationPath(generation) + "/" + file);
  }
  // Writes into the same inode, regardless of its mode, as root can.
  void WriteInPlace(const stdfs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  void Replace(const stdfs::path& path, const std::string& bytes) {
    const stdfs::path beside = path.string() + ".tmp";
    WriteInPlace(beside, bytes);
    stdfs::rename(beside, path);
  }
  // Changes the content but not size and mtime, as a failing disk does.
  void Rot(const stdfs::path& path) {
    struct ::stat before {};
    ASSERT_EQ(::stat(path.c_str(), &before), 0);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    const int first = file.get();
    file.seekp(0);
    file.put(static_cast<char>(first ^ 1));
    file.close();
    const timespec times[] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  const Files files_ = {{kIndexFile, "index"},
                        {kObjectFile, SharedObject("code")},
                        {kOutputFile, "def call(): pass"},
                        {kNinjaFile, "rule cc"},
                        {kNinjaObject, SharedObject("extension")},
                        {kKernel, "cubin"},
                        {kKernelSource, "source"}};
  std::vector<Digest> digests_;  // of the last Fetch()
  std::map<std::string, DamagedTree> damaged_;
  std::function<absl::Status(int64_t)> pace_ = [](int64_t) { return absl::OkStatus(); };
};

TEST_F(ScrubTreeTest, SparseFileOfATerabyteIsNotRead) {
  const std::string tree = Fetch();
  int64_t paced = 0;
  pace_ = [&paced](int64_t bytes) {
    paced += bytes;
    return paced > (1 << 20) ? absl::InternalError("read too much") : absl::OkStatus();
  };
  stdfs::remove(PathOf(tree, kOutputFile));
  WriteInPlace(PathOf(tree, kOutputFile), "");
  stdfs::resize_file(PathOf(tree, kOutputFile), uintmax_t{1} << 40U);
  const Scrubbed scrubbed = Scrub(tree);
  EXPECT_FALSE(scrubbed.damage.has_value()) << "an engine may replace its output";
  EXPECT_LE(paced, 1 << 20);
}

TEST_F(ScrubTreeTest, ReadsEveryFileOnceThenComparesStamps) {
  const std::string tree = Fetch();
  const Scrubbed first = Scrub(tree);
  EXPECT_EQ(first.files, 7);
  EXPECT_EQ(first.read_files, 7);
  EXPECT_FALSE(first.damage.has_value());
  EXPECT_EQ(Scrub(tree).read_files, 0);
  ASSERT_TRUE(ReadScrubRecord(root_.dir(), tree).ok());
  EXPECT_EQ(ReadScrubRecord(root_.dir(), tree)->at, clock_.Now());
}

TEST_F(ScrubTreeTest, NewFilesOfEnginesAreNoDamage) {
  const std::string tree = Fetch();
  root_.Write(GenerationPath(tree) + "/inductor/zz/cnew.main.so", "half a shared obj");
  root_.Write(GenerationPath(tree) + "/inductor/locks/l.lock", "");
  const Scrubbed scrubbed = Scrub(tree);
  EXPECT_FALSE(scrubbed.damage.has_value());
  EXPECT_EQ(scrubbed.files, 7);
}

TEST_F(ScrubTreeTest, ChangedStampOfIntactFileIsUpdated) {
  const std::string tree = Fetch();
  Scrub(tree);
  stdfs::create_hard_link(PathOf(tree, kIndexFile), root_ / "elsewhere");  // another ctime
  Replace(PathOf(tree, kOutputFile), files_.at(kOutputFile));              // another inode
  EXPECT_EQ(Scrub(tree).read_files, 2);
  EXPECT_EQ(Scrub(tree).read_files, 0);
  const auto entries = ReadEntryRecords(root_.dir(), tree);
  ASSERT_TRUE(entries.ok());
  for (const EntryRecord& entry : *entries) {
    const auto stat = root_.dir().Stat(GenerationPath(tree) + "/" + entry.path);
    EXPECT_EQ(entry.inode, stat->inode) << entry.path;
    EXPECT_EQ(entry.ctime_ns, stat->ctime_ns) << entry.path;
  }
}

// A change to a file of a bundle, and whether it is damage.
struct EngineAction {
  std::string what;
  std::string path;
  std::function<void(ScrubTreeTest&, const stdfs::path&)> act;
  std::string damage;  // empty: none
  int64_t modified_by_engine = 0;
  int64_t gone = 0;
};

class ScrubActionTest : public ScrubTreeTest {
 public:
  using ScrubTreeTest::Replace;
  using ScrubTreeTest::Rot;
  using ScrubTreeTest::WriteInPlace;
};

TEST_F(ScrubActionTest, DistinguishesEngineActionsFromDamage) {
  const auto self = [](ScrubTreeTest& test) -> ScrubActionTest& {
    return static_cast<ScrubActionTest&>(test);
  };
  const std::vector<EngineAction> actions = {
      {.what = "an entry was compiled again and renamed into place",
       .path = kIndexFile,
       .act = [&](auto& t, const auto& path) { self(t).Replace(path, "another"); },
       .modified_by_engine = 1},
      {.what = "the linker removed and made it again",
       .path = kObjectFile,
       .act =
           [&](auto& t, const auto& path) {
             stdfs::remove(path);
             self(t).WriteInPlace(path, SharedObject("other code"));
           },
       .modified_by_engine = 1},
      {.what = "the linker was killed over it",
       .path = kObjectFile,
       .act =
           [&](auto& t, const auto& path) {
             stdfs::remove(path);
             self(t).WriteInPlace(path, SharedObject("other code").substr(0, 70));
           },
       .damage = "was replaced by a truncated file"},
      {.what = "ninja wrote its file again",
       .path = kNinjaFile,
       .act = [&](auto& t, const auto& path) { self(t).WriteInPlace(path, "rule cxx"); },
       .modified_by_engine = 1},
      {.what = "ninja's compiler was killed",
       .path = kNinjaObject,
       .act =
           [&](auto& t, const auto& path) {
             self(t).WriteInPlace(path,
                                  "\x7f"
                                  "ELF");
           },
       .damage = "was replaced by a truncated file"},
      {.what = "a root process wrote into an entry",
       .path = kIndexFile,
       .act = [&](auto& t, const auto& path) { self(t).WriteInPlace(path, "INDEX"); },
       .damage = "was modified in place; no compiler does that to this file type"},
      {.what = "a root process truncated an entry",
       .path = kOutputFile,
       .act = [&](auto&, const auto& path) { stdfs::resize_file(path, 3); },
       .damage = "was modified in place; no compiler does that to this file type"},
      {.what = "the disk changes a byte",
       .path = kOutputFile,
       .act = [&](auto& t, const auto& path) { self(t).Rot(path); },
       .damage = "does not match its bundle, although no process wrote it"},
      {.what = "the disk changes a byte of a file that engines write",
       .path = kNinjaFile,
       .act = [&](auto& t, const auto& path) { self(t).Rot(path); },
       .damage = "does not match its bundle, although no process wrote it"},
      {.what = "an engine removed an entry",
       .path = kIndexFile,
       .act = [&](auto&, const auto& path) { stdfs::remove(path); },
       .gone = 1},
      {.what = "an engine removed a kernel's directory",
       .path = kKernel,
       .act = [&](auto&, const auto& path) { stdfs::remove_all(path.parent_path()); },
       .gone = 2},
      {.what = "a kernel's directory lost a file, which crashes DeepGEMM",
       .path = kKernelSource,
       .act = [&](auto&, const auto& path) { stdfs::remove(path); },
       .damage = "was removed, but " + kKernel + ", which needs it, still exists"},
      {.what = "a pod put a link there",
       .path = kIndexFile,
       .act =
           [&](auto&, const auto& path) {
             stdfs::remove(path);
             stdfs::create_symlink("/etc/passwd", path);
           },
       .modified_by_engine = 1},
      {.what = "a pod put a link in the place of a directory",
       .path = kIndexFile,
       .act =
           [&](auto&, const auto& path) {
             stdfs::remove_all(path.parent_path());
             stdfs::create_symlink("/etc", path.parent_path());
           },
       .modified_by_engine = 1},
  };
  for (const bool was_read : {false, true}) {
    for (const EngineAction& action : actions) {
      const std::string tree = Fetch();
      if (was_read) {
        Scrub(tree);
      }
      action.act(*this, PathOf(tree, action.path));
      const Scrubbed scrubbed = Scrub(tree);
      const DamagedTree damage = scrubbed.damage.value_or(DamagedTree());
      EXPECT_EQ(damage.message, action.damage) << action.what;
      if (!action.damage.empty()) {
        EXPECT_EQ(damage.path, action.path) << action.what;
        EXPECT_EQ(damage.digest, DigestOf(files_.at(action.path))) << action.what;
        EXPECT_EQ(damage.untouched, damage.message.ends_with("no process wrote it")) << action.what;
      } else {
        EXPECT_EQ(scrubbed.modified_by_engine, action.modified_by_engine) << action.what;
        EXPECT_EQ(scrubbed.gone, action.gone) << action.what;
        EXPECT_EQ(Scrub(tree).read_files, 0) << action.what << ": checked once";
      }
      ASSERT_TRUE(fs::RemoveTree(root_.dir(), GenerationPath(tree)).ok());
      ASSERT_TRUE(root_.dir().Remove(ScrubRecordPath(tree)).ok());
    }
  }
}

TEST_F(ScrubTreeTest, FileInFlightIsCheckedByNextPass) {
  const std::string tree = Fetch();
  Scrub(tree);
  WriteInPlace(PathOf(tree, kIndexFile), "written a moment ago");
  const auto real_now = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  clock_.Advance(real_now - clock_.Now());
  const Scrubbed in_flight = Scrub(tree);
  EXPECT_FALSE(in_flight.damage.has_value());
  EXPECT_EQ(in_flight.in_flight, 1);
  clock_.Advance(seconds(61));
  {
    const std::ofstream writer(PathOf(tree, kIndexFile), std::ios::binary | std::ios::app);
    EXPECT_EQ(Scrub(tree).in_flight, 1) << "a process has it open for writing";
  }
  EXPECT_TRUE(Scrub(tree).damage.has_value());
}

TEST_F(ScrubTreeTest, DeclaresOwnReads) {
  const std::string tree = Fetch();
  Scrub(tree);
  std::vector<std::string> announced = watcher_.own_reads();
  std::sort(announced.begin(), announced.end());
  std::vector<std::string> paths;
  for (const auto& [path, bytes] : files_) {
    paths.push_back(path);
  }
  EXPECT_EQ(announced, paths);
}

TEST_F(ScrubTreeTest, RealWatcherIgnoresItsReads) {
  const std::string tree = Fetch();
  const auto watcher = Watcher::Start({}, SystemClock(), log_);
  ASSERT_TRUE(watcher.ok()) << watcher.status();
  const WallTime begin = SystemClock().Now();
  ASSERT_TRUE((*watcher)
                  ->AddTree({.generation = tree,
                             .warmup_uid = kMount.uid,
                             .directory = root_.path() + "/" + GenerationPath(tree),
                             .run_as = kMount.run_as,
                             .fresh = true})
                  .ok());
  const auto scrubbed = ScrubTree({.root = root_.dir(),
                                   .watcher = **watcher,
                                   .store = store_,
                                   .table = caches::CacheTable::AllPresets(),
                                   .clock = clock_,
                                   .generation = tree,
                                   .damaged = {},
                                   .pace = pace_},
                                  {});
  ASSERT_TRUE(scrubbed.ok()) << scrubbed.status();
  EXPECT_EQ(scrubbed->read_files, 7);
  const EventRecord record = (*watcher)->ReadTree(tree, begin, SystemClock().Now() + seconds(1));
  EXPECT_TRUE(record.events.empty()) << record.events.front().path;
}

TEST_F(ScrubTreeTest, ResumesAfterStop) {
  const std::string tree = Fetch();
  std::stop_source stop;
  int reads = 0;
  pace_ = [&](int64_t) {
    if (++reads == 4) {
      stop.request_stop();
    }
    return absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsCancelled(Run(tree, stop.get_token()).status()));
  const auto record = ReadScrubRecord(root_.dir(), tree);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->at, WallTime{}) << "no complete pass yet";
  EXPECT_EQ(record->checked, 4);
  EXPECT_EQ(Scrub(tree).read_files, 3);
  EXPECT_EQ(Scrub(tree).read_files, 0);
}

TEST_F(ScrubTreeTest, ChangedEntryCountReadsAllFiles) {
  const std::string tree = Fetch();
  ASSERT_TRUE(WriteScrubRecord(root_.dir(), tree, {.entries = 9, .checked = 9}).ok());
  EXPECT_EQ(Scrub(tree).read_files, 7);
}

TEST_F(ScrubTreeTest, ReturnsNotFoundWithoutRecords) {
  const std::string tree = Fetch();
  ASSERT_TRUE(root_.dir().Remove(EntriesRecordPath(tree)).ok());
  EXPECT_TRUE(absl::IsNotFound(Run(tree).status()));
}

TEST_F(ScrubTreeTest, SameDamageInTwoTreesBlamesBundle) {
  const Files other = {{"inductor/fxgraph/zz/fzzz/entry", "of another bundle"}};
  const std::string first = Fetch({other, files_});
  Rot(PathOf(first, kIndexFile));
  const Scrubbed once = Scrub(first);
  ASSERT_TRUE(once.damage.has_value());
  EXPECT_TRUE(once.damage->untouched);
  EXPECT_TRUE(once.inconsistent_bundle.empty()) << "the disk may be the cause";
  damaged_[first] = *once.damage;
  const std::string second = FetchAgain(1);
  Rot(PathOf(second, kIndexFile));
  EXPECT_EQ(Scrub(second).inconsistent_bundle, digests_.at(1));
  store_.SetFault([](std::string_view) { return absl::UnavailableError("down"); });
  EXPECT_TRUE(Scrub(second).inconsistent_bundle.empty()) << "not without proof";
}

TEST_F(ScrubTreeTest, WrittenFileInSecondTreeBlamesNoBundle) {
  const std::string first = Fetch();
  Rot(PathOf(first, kIndexFile));
  damaged_[first] = *Scrub(first).damage;
  const std::string second = FetchAgain(1);
  WriteInPlace(PathOf(second, kIndexFile), "by a root process");
  const Scrubbed scrubbed = Scrub(second);
  EXPECT_TRUE(scrubbed.damage.has_value());
  EXPECT_TRUE(scrubbed.inconsistent_bundle.empty());
}

}  // namespace
}  // namespace cachewarm::agent
