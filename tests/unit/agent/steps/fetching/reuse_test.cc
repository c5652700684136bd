// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/fetching/reuse.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <mutex>
#include <variant>
#include <vector>

#include "agent/sync/tree_names.h"
#include "agent/tree/links.h"
#include "agent/tree/root_layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/fs/file.h"
#include "tests/fakes/noise.h"
#include "tests/unit/agent/steps/workbench.h"

// Reuse of files from existing trees of the node.
namespace cachewarm::agent {
namespace {

using Files = std::map<std::string, std::string>;

constexpr char kCubin[] = "triton/AAAA/kernel.cubin";
constexpr char kOther[] = "triton/BBBB/kernel.json";
// Written in place by vLLM, so it is never hard-linked.
constexpr char kInPlace[] = "vllm/modelinfos/llama.json";

class Reuse : public ::testing::Test {
 protected:
  Digest Publish(const Files& files) {
    const absl::StatusOr<Published> published = bench_.PublishFiles(files);
    EXPECT_TRUE(published.ok()) << published.status();
    return published->publication.digest;
  }

  Fetched Run(const Fetch& step) {
    const auto outcome = bench_.RunFetch(step);
    if (const auto* fault = std::get_if<FetchFault>(&outcome)) {
      ADD_FAILURE() << fault->status;
      return {};
    }
    return std::get<Fetched>(outcome);
  }

  // Fetches a tree of `files` as a source for other trees.
  std::string Have(const Files& files) {
    const Fetch step = Workbench::FetchOf({Publish(files)});
    Run(step);
    return step.generation;
  }

  Fetch StepOf(const Files& files, const std::string& source) {
    Fetch step = Workbench::FetchOf({Publish(files)});
    step.sources = {source};
    return step;
  }

  fs::FileStat Stat(const std::string& generation, const std::string& path) {
    return *bench_.root_.dir().Stat(GenerationPath(generation) + "/" + path);
  }
  std::string Read(const std::string& generation, const std::string& path) {
    return *fs::ReadFile(bench_.root_.dir(), GenerationPath(generation) + "/" + path, 1 << 20);
  }
  std::string PathOf(const std::string& generation, const std::string& path) {
    return bench_.root_.dir().name() + "/" + GenerationPath(generation) + "/" + path;
  }

  Workbench bench_;
};

const Files kFirst = {
    {kCubin, std::string(3000, 'c')}, {kOther, "{\"a\": 1}"}, {kInPlace, std::string(2000, 'j')}};

Files Second() {
  Files files = kFirst;
  files["triton/CCCC/new.cubin"] = "new";
  return files;
}

TEST_F(Reuse, ReusesExistingFilesAndFetchesTheRest) {
  const std::string source = Have(kFirst);
  const Fetch step = StepOf(Second(), source);
  const Fetched fetched = Run(step);
  EXPECT_EQ(fetched.reused_bytes, 3000 + 8 + 2000);
  for (const auto& [path, content] : Second()) {
    EXPECT_EQ(Read(step.generation, path), content) << path;
  }
}

TEST_F(Reuse, LinksOnlyFileTypesNotWrittenInPlace) {
  const std::string source = Have(kFirst);
  const Fetch step = StepOf(Second(), source);
  Run(step);
  EXPECT_EQ(Stat(step.generation, kCubin).inode, Stat(source, kCubin).inode);
  EXPECT_NE(Stat(step.generation, kInPlace).inode, Stat(source, kInPlace).inode);
  EXPECT_EQ(Stat(step.generation, kInPlace).mode, 0666U);
  EXPECT_EQ(Stat(step.generation, kCubin).mode, 0444U);
}

TEST_F(Reuse, JournalMatchesNewTree) {
  const std::string source = Have(kFirst);
  const Fetch step = StepOf(Second(), source);
  Run(step);
  const auto records = ReadEntryRecords(bench_.root_.dir(), step.generation);
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->size(), Second().size());
  for (const EntryRecord& record : *records) {
    const fs::FileStat stat = Stat(step.generation, record.path);
    EXPECT_EQ(record.inode, stat.inode) << record.path;
    EXPECT_EQ(record.ctime_ns, stat.ctime_ns) << record.path;
    EXPECT_EQ(record.mtime_ns, stat.mtime_ns) << record.path;
    EXPECT_EQ(record.digest, DigestOf(Second().at(record.path))) << record.path;
  }
}

TEST_F(Reuse, ReusesFilesAfterCtimeChange) {
  const std::string first = Have(kFirst);
  const Fetch second = StepOf(Second(), first);
  Run(second);
  // The ctimes in the first tree's journal are outdated now; the contents are unchanged.
  Files files = Second();
  files["triton/DDDD/newer.cubin"] = "newer";
  const Fetch third = StepOf(files, first);
  const Fetched fetched = Run(third);
  EXPECT_EQ(fetched.reused_bytes, 3000 + 8 + 2000);
  EXPECT_EQ(Stat(third.generation, kCubin).inode, Stat(first, kCubin).inode);
}

TEST_F(Reuse, DeclaresReadsOfSource) {
  const std::string source = Have(kFirst);
  FetchJob job = bench_.JobOf(StepOf(Second(), source));
  std::mutex mutex;
  std::vector<std::string> opened;
  job.on_opening_source = [&](const std::string& generation, const std::string& path) {
    const std::lock_guard lock(mutex);
    opened.push_back(generation + "/" + path);
  };
  ASSERT_TRUE(std::holds_alternative<Fetched>(FetchGeneration(job, {})));
  // Hard-linked files are not opened.
  EXPECT_THAT(opened, ::testing::ElementsAre(source + "/" + kInPlace));
}

TEST_F(Reuse, ModifiedFileIsFetched) {
  for (const char* path : {kCubin, kInPlace}) {
    Files files = kFirst;
    files["triton/only/" + std::to_string(path[0]) + ".json"] = "a separate tree";
    const std::string source = Have(files);
    const std::string victim = PathOf(source, path);
    ASSERT_EQ(::chmod(victim.c_str(), 0666), 0);
    std::fstream(victim, std::ios::in | std::ios::out) << "damage";
    Files wanted = files;
    wanted["triton/CCCC/new.cubin"] = std::string("for ") + path;
    const Fetch step = StepOf(wanted, source);
    Run(step);
    EXPECT_EQ(Read(step.generation, path), kFirst.at(path)) << path;
  }
}

TEST_F(Reuse, ContentCheckFindsDamageWithSameStamp) {
  const std::string source = Have(kFirst);
  const std::string victim = PathOf(source, kCubin);
  struct stat before {};
  ASSERT_EQ(::stat(victim.c_str(), &before), 0);
  ASSERT_EQ(::chmod(victim.c_str(), 0666), 0);
  std::fstream(victim, std::ios::in | std::ios::out) << "damage";
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, victim.c_str(), times, 0), 0);
  ASSERT_EQ(::chmod(victim.c_str(), 0444), 0);
  const Fetch step = StepOf(Second(), source);
  Run(step);
  EXPECT_EQ(Read(step.generation, kCubin), kFirst.at(kCubin));
}

TEST_F(Reuse, LinkInSourceIsNotFollowed) {
  const std::string source = Have(kFirst);
  const std::string secret = bench_.root_.dir().name() + "/secret";
  std::ofstream(secret) << std::string(3000, 'c');
  ASSERT_EQ(::unlink(PathOf(source, kCubin).c_str()), 0);
  ASSERT_EQ(::symlink(secret.c_str(), PathOf(source, kCubin).c_str()), 0);
  const Fetch step = StepOf(Second(), source);
  Run(step);
  EXPECT_EQ(Stat(step.generation, kCubin).type, fs::FileType::kFile);
  EXPECT_EQ(Read(step.generation, kCubin), kFirst.at(kCubin));
}

TEST_F(Reuse, SourceWithoutJournalIsIgnored) {
  const std::string source = Have(kFirst);
  ASSERT_TRUE(bench_.root_.dir().Remove(EntriesRecordPath(source)).ok());
  const Fetch step = StepOf(Second(), source);
  EXPECT_EQ(Run(step).reused_bytes, 0);
  EXPECT_EQ(Read(step.generation, kCubin), kFirst.at(kCubin));
}

TEST_F(Reuse, RemovedFileIsFetched) {
  const std::string source = Have(kFirst);
  ASSERT_EQ(::unlink(PathOf(source, kCubin).c_str()), 0);
  const Fetch step = StepOf(Second(), source);
  EXPECT_EQ(Run(step).reused_bytes, 8 + 2000);
  EXPECT_EQ(Read(step.generation, kCubin), kFirst.at(kCubin));
}

TEST_F(Reuse, CopiesFilesOfOtherUser) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can give files away";
  }
  const std::string source = Have(kFirst);
  Fetch step = StepOf(Second(), source);
  step.mount.run_as = "u1000";
  step.generation = GenerationId(step.mount, DigestsOf(step.bundles));
  Run(step);
  EXPECT_NE(Stat(step.generation, kCubin).inode, Stat(source, kCubin).inode);
  EXPECT_EQ(Stat(step.generation, kCubin).uid, 1000U);
  EXPECT_EQ(Read(step.generation, kCubin), kFirst.at(kCubin));
}

TEST_F(Reuse, IncrementalUpdateFetchesOnlyNewLayer) {
  Files files = kFirst;
  files["triton/LARGE/large.cubin"] = fakes::Noise(200'000, 1);
  const std::string source = Have(files);
  Files changed = files;
  changed["triton/CCCC/new.cubin"] = "new";
  const Fetch step = StepOf(changed, source);
  const Fetched fetched = Run(step);
  EXPECT_LT(fetched.packed_bytes, 20'000);
  for (const auto& [path, content] : changed) {
    EXPECT_EQ(Read(step.generation, path), content) << path;
  }
}

}  // namespace
}  // namespace cachewarm::agent
