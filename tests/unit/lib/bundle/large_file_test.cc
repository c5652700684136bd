// SPDX-License-Identifier: Apache-2.0
// Files that span frames: any thread writes any frame of them, at the offset that follows from the
// sizes in the index.
#include <algorithm>
#include <numeric>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/bundle/unpack/members.h"
#include "lib/bundle/unpack/tree_files.h"
#include "tests/unit/lib/bundle/layered.h"
#include "tests/unit/lib/bundle/raw_tar.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kFrame = 4096;

// Returns a layer with frames of the given raw sizes.
Config Frames(const std::vector<int64_t>& raw_bytes) {
  Config config;
  LayerIndex& layer = config.layers.emplace_back();
  for (const int64_t bytes : raw_bytes) {
    layer.frames.push_back({.bytes = 1, .raw_bytes = bytes});
  }
  return config;
}

Entry FileAt(int64_t frame, int64_t bytes, int64_t mtime_ns = 0, std::string path = "a") {
  return {.path = std::move(path),
          .kind = "triton",
          .bytes = bytes,
          .mtime_ns = mtime_ns,
          .frame = frame};
}

TEST(LargeFilesOf, HeaderAndPaddedContentFillTheFrames) {
  Config config = Frames({1024, kFrame, kFrame, 512, 1024});
  config.entries = {FileAt(1, 2 * kFrame)};
  const std::vector<LargeFile> files = LargeFilesOf(config);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].frames, 3);
  EXPECT_THAT(files[0].offsets, ElementsAre(0, kFrame - 512, 2 * kFrame - 512));
}

TEST(LargeFilesOf, FileThatFitsIsNotLarge) {
  Config config = Frames({kFrame, 1024});
  config.entries = {FileAt(0, kFrame - 512)};
  EXPECT_THAT(LargeFilesOf(config), IsEmpty());
}

TEST(LargeFilesOf, LongHeaderBelongsToTheLastFrameToo) {
  // The header takes 1536 bytes. The content of the first two frames and its padding would also
  // fill them with a shorter header, but then the third frame would hold nothing.
  const int64_t mtime_ns = 1'700'000'000'000'000'001;
  Config config = Frames({kFrame, kFrame, 512, 1024});
  config.entries = {FileAt(0, 2 * kFrame - 1024, mtime_ns)};
  ASSERT_EQ(TarHeader({.path = "a", .type = MemberType::kFile, .mtime_ns = mtime_ns})->size(),
            1536U);
  const std::vector<LargeFile> files = LargeFilesOf(config);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_THAT(files[0].offsets, ElementsAre(0, kFrame - 1536, 2 * kFrame - 1536));
}

TEST(LargeFilesOf, HeaderOfAnotherPackerIsAccepted) {
  Config config = Frames({kFrame, kFrame, 1024});
  config.entries = {FileAt(0, 2 * kFrame - 1024)};  // with a header of 1024 instead of 512 bytes
  const std::vector<LargeFile> files = LargeFilesOf(config);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_THAT(files[0].offsets, ElementsAre(0, kFrame - 1024));
}

TEST(LargeFilesOf, TooFewFramesHaveNoOffsets) {
  Config ends = Frames({kFrame, kFrame});
  ends.entries = {FileAt(0, 2 * kFrame)};
  Config interrupted = Frames({kFrame, kFrame, kFrame});
  interrupted.entries = {FileAt(0, 2 * kFrame), FileAt(2, 1, 0, "b")};
  Config far_too_large = Frames({1024, 16 * kFrame});  // the content would begin before the file
  far_too_large.entries = {FileAt(0, 1000)};
  for (const Config& config : {ends, interrupted, far_too_large}) {
    const std::vector<LargeFile> files = LargeFilesOf(config);
    ASSERT_EQ(files.size(), 1U);
    EXPECT_THAT(files[0].offsets, IsEmpty());
    EXPECT_EQ(files[0].frames, 2);
  }
}

TEST(LargeFile, EverySizeAroundTheEndOfAFrameIsUnpacked) {
  for (const int64_t mtime_ns : {int64_t{0}, int64_t{1'700'000'000'000'000'001}}) {
    for (const std::string& path : {std::string("b"), "d/" + std::string(180, 'y')}) {
      for (size_t bytes = 2048; bytes <= 3 * size_t{kFrame}; bytes += 256) {
        const TestTree tree = {{"a", {.content = "first"}},
                               {path, {.content = Noise(bytes, 1), .mtime_ns = mtime_ns}},
                               {"z", {.content = "last"}}};
        const TempDir staging;
        const absl::Status status = Unpack(PackTree(tree), staging.Open(),
                                           {.threads = 3, .check_contents = false, .sync = false});
        ASSERT_TRUE(status.ok()) << bytes << " " << path << ": " << status;
        ASSERT_EQ(ReadTree(staging.Open()), ExpectedTree(tree)) << bytes << " " << path;
      }
    }
  }
}

// Passes the raw frames of a bundle of one layer to a MemberStream.
class SingleFrames {
 public:
  SingleFrames(const Config& config, std::string_view layer) : config_(config), layer_(layer) {
    needed_.resize(config.layers[0].frames.size());
    std::iota(needed_.begin(), needed_.end(), int64_t{0});
    members_.emplace(config_, needed_, MemberChecks{.contents = false});
  }

  absl::Status Handle(int64_t index, FileMaker& maker) {
    const Frame& frame = config_.layers[0].frames[static_cast<size_t>(index)];
    Buffer raw;
    EXPECT_TRUE(FrameReader()
                    .Decompress(layer_.substr(static_cast<size_t>(frame.offset),
                                              static_cast<size_t>(frame.bytes)),
                                static_cast<size_t>(frame.raw_bytes), raw)
                    .ok());
    return members_->Handle({.index = index, .position = index, .raw = raw.view(), .pool = pool_},
                            maker);
  }
  absl::Status Finish() { return members_->Finish(); }
  int64_t frames() const { return static_cast<int64_t>(needed_.size()); }

 private:
  const Config& config_;
  const std::string_view layer_;
  std::vector<int64_t> needed_;
  std::optional<MemberStream> members_;
  WorkerPool pool_{1};
};

TEST(LargeFile, FramesAreWrittenInAnyOrder) {
  const TestTree tree = {{"a", {.content = Noise(50'000, 1)}},
                         {"b", {.content = "small"}},
                         {"c", {.content = Noise(20'000, 2), .mtime_ns = 1'000'000'001}}};
  const PackedSample sample = PackTree(tree);
  const TempDir staging;
  const fs::Dir dir = staging.Open();
  const UnpackOptions options;
  TreeFiles files(dir, options);
  SingleFrames members(sample.packed.config, sample.layer);
  for (int64_t index = members.frames() - 1; index >= 0; --index) {
    EXPECT_FALSE(members.Finish().ok());
    const absl::Status handled = members.Handle(index, files);
    ASSERT_TRUE(handled.ok()) << index << ": " << handled;
  }
  EXPECT_TRUE(members.Finish().ok());
  EXPECT_EQ(ReadTree(dir), ExpectedTree(tree));
  EXPECT_EQ(dir.Stat("c")->mtime_ns, 1'000'000'001);
}

TEST(LargeFile, FirstFrameThatContradictsTheSizesIsRefused) {
  // The pax header makes the first frame hold 512 bytes of content less than its size suggests.
  const std::string content = Noise(6000, 1);
  const std::string tar =
      RawTar({{.path = "a", .content = content, .pax = {{"comment", std::string(600, 'x')}}}});
  // 512 (pax) + 1024 (its records) + 512 (header) + 6144: the index says that it is a block less.
  const std::vector<std::string> frames = {tar.substr(0, 4096), tar.substr(4096, 4096 - 512),
                                           TarEnd()};
  for (const bool check_contents : {false, true}) {
    const RawBundle bundle = BundleOf(frames, {EntryOf("a", content)});
    const TempDir staging;
    const absl::Status status =
        Unpack({bundle.config, bundle.manifest, bundle.layer}, staging.Open(),
               {.threads = 1, .check_contents = check_contents});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("its first frame holds"));
  }
}

TEST(LargeFile, ContentOfAnOlderLayerIsCompared) {
  TestTree tree = {{"a", {.content = Noise(50'000, 1)}}, {"b", {.content = Noise(60'000, 2)}}};
  const Made base = Make(tree);
  tree["c"] = {.content = "new"};
  Made made = Make(tree, &base);
  ASSERT_EQ(made.bundle.manifest.layers.size(), 2U);
  UnpackOptions options{.threads = 4, .check_contents = false, .sync = false};
  EXPECT_EQ(Unpacked(made, options), Contents(tree));
  made.bundle.config.entries[0].digest = DigestOf("another content");
  const TempDir staging;
  const absl::Status status =
      Unpack({made.bundle.config, made.bundle.manifest, made.layers}, staging.Open(), options);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"a\" does not match its sha256"));
}

}  // namespace
}  // namespace cachewarm::bundle
