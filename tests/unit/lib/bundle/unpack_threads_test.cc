// SPDX-License-Identifier: Apache-2.0
// Unpacking with several threads: equal trees, equal errors, bounded memory, and an end after every
// error.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "lib/bundle/unpack/tree_files.h"
#include "tests/fakes/await.h"
#include "tests/unit/lib/bundle/raw_tar.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

class UnpackThreads : public ::testing::TestWithParam<int> {
 protected:
  UnpackOptions Options() const { return {.threads = GetParam(), .sync = false}; }
  int threads() const { return GetParam(); }
};

TEST_P(UnpackThreads, WriteTheSameTree) {
  for (const int64_t frame_bytes : {4096, 16384, 1 << 20}) {
    const PackedSample sample = PackTree(ManyFiles(), frame_bytes);
    const TempDir staging;
    const absl::Status status = Unpack(sample, staging.Open(), Options());
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(ReadTree(staging.Open()), ExpectedTree(ManyFiles()));
  }
}

TEST_P(UnpackThreads, WriteLargeFiles) {
  const TestTree tree = {
      {"a", {.content = Noise(1'000'000, 1)}},
      {"b", {.content = "small"}},
      {"c", {.content = Noise(500'000, 2), .mtime_ns = 1'700'000'000'000'000'001}},
      {"d", {.content = Noise(4096, 3)}}};
  const TempDir staging;
  const fs::Dir dir = staging.Open();
  const absl::Status status = Unpack(PackTree(tree), dir, Options());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ReadTree(dir), ExpectedTree(tree));
  EXPECT_EQ(dir.Stat("c")->mtime_ns, 1'700'000'000'000'000'001);
}

TEST_P(UnpackThreads, ReportTheFirstBadFrame) {
  PackedSample sample = PackTree(ManyFiles());
  auto& frames = sample.packed.config.layers[0].frames;
  ASSERT_GT(frames.size(), 60U);
  for (const size_t bad : {20U, 21U, 22U, 23U, 50U}) {
    frames[bad].digest = DigestOf("other");
  }
  const TempDir staging;
  const absl::Status status = Unpack(sample, staging.Open(), Options());
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(status.message(), "frame 20 does not match its sha256 in the frame index");
}

TEST_P(UnpackThreads, DoNotFinishFileWithBadFrame) {
  PackedSample sample = PackTree({{"a", {.content = Noise(100'000, 1)}}, {"b", {.content = "b"}}});
  auto& frames = sample.packed.config.layers[0].frames;
  for (size_t bad = 0; bad < frames.size(); ++bad) {
    const Digest good = std::exchange(frames[bad].digest, DigestOf("other"));
    const TempDir staging;
    EXPECT_TRUE(absl::IsDataLoss(Unpack(sample, staging.Open(), Options()))) << bad;
    frames[bad].digest = good;
  }
}

TEST_P(UnpackThreads, StopSoonAfterABadFrame) {
  PackedSample sample = PackTree(ManyFiles());
  auto& frames = sample.packed.config.layers[0].frames;
  frames[1].digest = DigestOf("other");
  const TempDir staging;
  EXPECT_FALSE(Unpack(sample, staging.Open(), Options()).ok());
  const int64_t last = 2 + threads() + 2;
  for (const Entry& entry : sample.packed.config.entries) {
    if (entry.frame > last) {
      EXPECT_FALSE(*staging.Open().Exists(entry.path)) << entry.path << " in " << entry.frame;
    }
  }
}

// Blocks the workers in `mode_of`, which is called before each file is created.
class Gate {
 public:
  UnpackOptions Options(int threads) {
    return {.threads = threads, .mode_of = [this](const Entry&) {
              ++waiting_;
              EXPECT_TRUE(fakes::Await([this] { return open_.load(); }));
              return mode_t{0444};
            }};
  }
  bool AwaitWorkers(int count) {
    return fakes::Await([&] { return waiting_ >= count; });
  }
  void Open() { open_ = true; }

 private:
  std::atomic<int> waiting_ = 0;
  std::atomic<bool> open_ = false;
};

TestTree OneFileAFrame() {
  TestTree tree;
  for (size_t i = 0; i < 60; ++i) {
    tree[fmt::format("f{:03}", i)] = {.content = Noise(3000, static_cast<uint32_t>(i))};
  }
  return tree;
}

TEST_P(UnpackThreads, BufferFewFrames) {
  const PackedSample sample = PackTree(OneFileAFrame());
  const auto& frames = sample.packed.config.layers[0].frames;
  const TempDir staging;
  const fs::Dir dir = staging.Open();
  Gate gate;
  Unpacker unpacker(sample.packed.config, sample.packed.manifest, dir, gate.Options(threads()));
  ASSERT_TRUE(unpacker.Start().ok());
  std::atomic<size_t> accepted = 0;
  absl::Status written;
  std::jthread writer([&] {
    for (const Frame& frame : frames) {
      written.Update(unpacker.Write(
          std::string_view(sample.layer)
              .substr(static_cast<size_t>(frame.offset), static_cast<size_t>(frame.bytes))));
      ++accepted;
    }
  });
  const auto most = static_cast<size_t>(threads()) + 2;
  EXPECT_TRUE(gate.AwaitWorkers(threads()));
  EXPECT_TRUE(fakes::Await([&] { return accepted >= most; }));
  // Write() blocks for the next frame while the disk is slow.
  EXPECT_EQ(accepted, most);
  gate.Open();
  writer.join();
  EXPECT_EQ(accepted, frames.size());
  EXPECT_TRUE(written.ok()) << written;
  EXPECT_TRUE(unpacker.Finish().ok());
  EXPECT_EQ(ReadTree(dir), ExpectedTree(OneFileAFrame()));
}

TEST_P(UnpackThreads, EndWithTheUnpacker) {
  const PackedSample sample = PackTree(ManyFiles());
  for (const size_t bytes : {size_t{0}, size_t{1}, sample.layer.size() / 2, sample.layer.size()}) {
    const TempDir staging;
    const fs::Dir dir = staging.Open();
    Unpacker unpacker(sample.packed.config, sample.packed.manifest, dir, Options());
    ASSERT_TRUE(unpacker.Start().ok());
    EXPECT_TRUE(unpacker.Write(std::string_view(sample.layer).substr(0, bytes)).ok());
  }
}

TEST_P(UnpackThreads, ErrorIsSticky) {
  PackedSample sample = PackTree(ManyFiles());
  sample.packed.config.layers[0].frames[3].digest = DigestOf("other");
  const TempDir staging;
  const fs::Dir dir = staging.Open();
  Unpacker unpacker(sample.packed.config, sample.packed.manifest, dir, Options());
  ASSERT_TRUE(unpacker.Start().ok());
  const absl::Status first = unpacker.Write(sample.layer);
  EXPECT_TRUE(absl::IsDataLoss(first));
  EXPECT_EQ(unpacker.Write(sample.layer), first);
  EXPECT_EQ(unpacker.Finish(), first);
}

TEST_P(UnpackThreads, RejectMemberInsideALargeFile) {
  const std::string content = Noise(1000, 1);
  const std::string tar = RawTar({{.path = "a", .content = content}});
  const RawBundle bundle =
      BundleOf({tar.substr(0, 1024), RawTar({{.path = "b", .content = "b"}}), tar.substr(1024)},
               {EntryOf("a", content), EntryOf("b", "b", 1)});
  const TempDir staging;
  const absl::Status status =
      Unpack({bundle.config, bundle.manifest, bundle.layer}, staging.Open(), Options());
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

TEST_P(UnpackThreads, MissingContentIsDataLoss) {
  const std::string content = Noise(1000, 1);
  const std::string tar = RawTar({{.path = "a", .content = content}});
  const RawBundle bundle = BundleOf({tar.substr(0, 1024)}, {EntryOf("a", content)});
  const TempDir staging;
  const absl::Status status =
      Unpack({bundle.config, bundle.manifest, bundle.layer}, staging.Open(), Options());
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

INSTANTIATE_TEST_SUITE_P(Counts, UnpackThreads, ::testing::Values(1, 2, 3, 4, 8));

size_t OpenDescriptors() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                           std::filesystem::directory_iterator()));
}

TEST(DirHandles, KeepRecentDirectoriesOpen) {
  const TempDir root;
  const fs::Dir dir = root.Open();
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(dir.MakeDirs(fmt::format("d{}/e", i), 0755).ok());
  }
  const size_t before = OpenDescriptors();
  DirHandles handles(dir);
  for (int i = 0; i < 200; ++i) {
    const auto found = handles.Open(fmt::format("d{}/e", i * i % 40));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE((*found)->name().ends_with(fmt::format("/d{}/e", i * i % 40)));
    EXPECT_LE(OpenDescriptors(), before + DirHandles::kHandlesMax);
  }
  EXPECT_EQ(*handles.Open(""), &dir);
  EXPECT_TRUE(absl::IsNotFound(handles.Open("d0/f").status()));
}

TEST(SplitPath, SplitsDirectoryAndName) {
  EXPECT_EQ(SplitPath("a").directory, "");
  EXPECT_EQ(SplitPath("a").name, "a");
  EXPECT_EQ(SplitPath("a/b/c").directory, "a/b");
  EXPECT_EQ(SplitPath("a/b/c").name, "c");
}

}  // namespace
}  // namespace cachewarm::bundle
