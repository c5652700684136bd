// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/unpacker.h"

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/unpack/flusher.h"
#include "lib/bundle/unpack/tree_files.h"
#include "lib/fs/file.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

mode_t ModeOf(const fs::Dir& dir, const std::string& path) {
  return dir.Stat(path)->mode;
}

TEST(Unpacker, SetsModesOfTheKindDespiteUmask) {
  const mode_t before = ::umask(077);
  const TempDir staging;
  const fs::Dir dir = staging.Open();
  const absl::Status status =
      Unpack(PackTree(SampleTree()), dir, {.mode_of = [](const Entry& entry) {
               return entry.kind == "flashinfer" ? mode_t{0666} : mode_t{0444};
             }});
  ::umask(before);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ModeOf(dir, "flashinfer/build.ninja"), 0666U);
  EXPECT_EQ(ModeOf(dir, "inductor/ab/cab.py"), 0444U);
  EXPECT_EQ(ModeOf(dir, "inductor"), 0777U);
  EXPECT_EQ(ModeOf(dir, "inductor/ab"), 0777U);
}

TEST(Unpacker, RestoresMtimeWithNanoseconds) {
  const TempDir staging;
  const fs::Dir dir = staging.Open();
  ASSERT_TRUE(Unpack(PackTree(SampleTree()), dir).ok());
  EXPECT_EQ(dir.Stat("flashinfer/build.ninja")->mtime_ns, 1'700'000'000'123'456'789);
}

TEST(Unpacker, KeepExistingRetainsFirstFile) {
  const TempDir staging;
  const fs::Dir dir = staging.Open();
  const TestTree first = {{"triton/a", {.content = "first"}}, {"triton/x", {.content = "x"}}};
  const TestTree second = {{"triton/a", {.content = "second"}}, {"inductor/b", {.content = "b"}}};
  ASSERT_TRUE(Unpack(PackTree(first), dir).ok());
  const absl::Status status = Unpack(PackTree(second), dir, {.keep_existing = true});
  ASSERT_TRUE(status.ok()) << status;
  const auto tree = ReadTree(dir);
  EXPECT_EQ(tree.at("triton/a"), "first");
  EXPECT_EQ(tree.at("triton/x"), "x");
  EXPECT_EQ(tree.at("inductor/b"), "b");
}

TEST(Unpacker, UnwantedFileIsNotCreated) {
  const TempDir staging;
  const fs::Dir dir = staging.Open();
  const TestTree tree = {{"triton/a", {.content = "a"}},
                         {"triton/b", {.content = Noise(10'000, 1)}},
                         {"triton/c", {.content = "c"}}};
  std::atomic<int> finished = 0;
  const UnpackOptions options{
      .on_file =
          [&finished](const Entry&, const fs::Fd&) {
            ++finished;
            return absl::OkStatus();
          },
      .wanted = [](const Entry& entry) { return entry.path != "triton/b"; }};
  const absl::Status status = Unpack(PackTree(tree), dir, options);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ReadTree(dir), (std::map<std::string, std::string>{
                               {"triton/", ""}, {"triton/a", "a"}, {"triton/c", "c"}}));
  EXPECT_EQ(finished, 2);
}

TEST(Unpacker, KeepExistingStillVerifiesContent) {
  const TempDir staging;
  const fs::Dir dir = staging.Open();
  ASSERT_TRUE(Unpack(PackTree({{"a", {.content = "first"}}}), dir).ok());
  PackedSample sample = PackTree({{"a", {.content = "second"}}});
  sample.packed.config.entries[0].digest = DigestOf("something else");
  EXPECT_TRUE(absl::IsDataLoss(Unpack(sample, dir, {.keep_existing = true})));
}

TEST(Unpacker, KeepExistingRejectsFileAtDirectory) {
  const TempDir staging;
  const fs::Dir dir = staging.Open();
  ASSERT_TRUE(Unpack(PackTree({{"a/b", {.content = "x"}}}), dir).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(
      Unpack(PackTree({{"a", {.content = "x"}}}), dir, {.keep_existing = true})));
}

TEST(Unpacker, WithoutContentCheckDamageIsStillDetected) {
  PackedSample sample = PackTree(SampleTree());
  sample.packed.config.entries[0].digest = DigestOf("something else");
  const TempDir staging;
  const absl::Status status = Unpack(sample, staging.Open(), {.check_contents = false});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ReadTree(staging.Open()), ExpectedTree(SampleTree()));
  sample.layer[sample.layer.size() / 2] ^= 1;
  const TempDir other;
  EXPECT_TRUE(absl::IsDataLoss(Unpack(sample, other.Open(), {.check_contents = false})));
}

TEST(Unpacker, CallsOnFileOncePerCompleteFile) {
  const PackedSample sample = PackTree(ManyFiles());
  const TempDir staging;
  std::mutex mutex;
  std::map<std::string, int64_t> sizes;
  const auto on_file = [&](const Entry& entry, const fs::Fd& file) -> absl::Status {
    CW_ASSIGN_OR_RETURN(const fs::FileStat stat, fs::StatFile(file));
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(sizes.emplace(entry.path, stat.bytes).second) << entry.path;
    return absl::OkStatus();
  };
  const absl::Status status = Unpack(sample, staging.Open(), {.on_file = on_file});
  ASSERT_TRUE(status.ok()) << status;
  std::map<std::string, int64_t> expected;
  for (const Entry& entry : sample.packed.config.entries) {
    expected[entry.path] = entry.bytes;
  }
  EXPECT_EQ(sizes, expected);
}

TEST(Unpacker, StopsOnErrorOfOnFile) {
  const TempDir staging;
  const auto on_file = [](const Entry&, const fs::Fd&) { return absl::InternalError("no"); };
  EXPECT_TRUE(
      absl::IsInternal(Unpack(PackTree(SampleTree()), staging.Open(), {.on_file = on_file})));
}

TEST(Unpacker, MakesDirectoriesOnSeveralThreads) {
  TestTree tree;
  for (int i = 0; i < 300; ++i) {
    tree["triton/" + std::to_string(i % 150) + "/" + std::to_string(i) + "/a/b/c"] = {
        .content = std::to_string(i)};
  }
  for (const int threads : {1, 8}) {
    const TempDir staging;
    const fs::Dir dir = staging.Open();
    const absl::Status status = Unpack(PackTree(tree), dir, {.threads = threads, .sync = false});
    ASSERT_TRUE(status.ok()) << threads << status;
    EXPECT_EQ(ReadTree(dir), ExpectedTree(tree)) << threads;
    EXPECT_EQ(ModeOf(dir, "triton/7/157/a/b"), 0777U) << threads;
  }
}

TEST(Unpacker, UsesExistingDirectories) {
  const PackedSample sample = PackTree(SampleTree());
  const UnpackOptions options{.make_directories = false, .sync = false};
  EXPECT_TRUE(absl::IsNotFound(Unpack(sample, TempDir().Open(), options)));
  const TempDir staging;
  const fs::Dir dir = staging.Open();
  ASSERT_TRUE(MakeDirectories(sample.packed.config, dir, options).ok());
  const absl::Status status = Unpack(sample, dir, options);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ReadTree(dir), ExpectedTree(SampleTree()));
}

TEST(Flusher, MayBeDestroyedAtAnyTime) {
  const TempDir directory;
  const fs::Dir dir = directory.Open();
  for (const int files : {0, 1, 1000}) {
    const std::string name = "f" + std::to_string(files);
    const absl::StatusOr<fs::Fd> file = dir.CreateFile(name, 0644);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(fs::WriteAll(*file, "content").ok());
    Flusher flusher;
    for (int i = 0; i < files; ++i) {
      flusher.Add(*file);
    }
  }
}

TEST(Flusher, KeepsFewDescriptors) {
  const auto count = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const TempDir directory;
  const fs::Dir dir = directory.Open();
  const fs::Fd file = *dir.CreateFile("f", 0644);
  const auto before = count();
  {
    Flusher flusher;
    for (int i = 0; i < 10'000; ++i) {
      flusher.Add(file);
    }
    EXPECT_LE(count(), before + 66);
  }
  EXPECT_EQ(count(), before);
}

TEST(Unpacker, CombinesLayersToOneTree) {
  const PackedSample one = PackTree({{"a", {.content = "1"}}, {"c", {.content = "3"}}});
  const PackedSample two = PackTree({{"b", {.content = "2"}}});
  Config config = one.packed.config;
  config.layers.push_back(two.packed.config.layers[0]);
  Entry b = two.packed.config.entries[0];
  b.frame += static_cast<int64_t>(one.packed.config.layers[0].frames.size());
  config.entries.insert(config.entries.begin() + 1, b);
  Manifest manifest = one.packed.manifest;
  manifest.layers.push_back(two.packed.manifest.layers[0]);
  const TempDir staging;
  const absl::Status status = Unpack({config, manifest, one.layer + two.layer}, staging.Open());
  ASSERT_TRUE(status.ok()) << status;
  const std::map<std::string, std::string> expected = {{"a", "1"}, {"b", "2"}, {"c", "3"}};
  EXPECT_EQ(ReadTree(staging.Open()), expected);
}

}  // namespace
}  // namespace cachewarm::bundle
