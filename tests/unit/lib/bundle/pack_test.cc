// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/bundle/packer.h"
#include "lib/bundle/unpacker.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using ::testing::HasSubstr;

TEST(Packer, PackedTreeUnpacksUnchanged) {
  for (const int64_t frame_bytes : {4096, 4608, 16384, 1 << 20}) {
    const TestTree tree = SampleTree();
    const PackedSample sample = PackTree(tree, frame_bytes);
    const TempDir staging;
    ASSERT_TRUE(Unpack(sample, staging.Open()).ok()) << frame_bytes;
    EXPECT_EQ(ReadTree(staging.Open()), ExpectedTree(tree)) << frame_bytes;
  }
}

TEST(Packer, UnpackAcceptsPiecesOfAnySize) {
  const TestTree tree = SampleTree();
  const PackedSample sample = PackTree(tree);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{4096}, sample.layer.size()}) {
    const TempDir staging;
    const absl::Status status =
        Unpack({sample.packed.config, sample.packed.manifest, sample.layer, piece}, staging.Open());
    EXPECT_TRUE(status.ok()) << piece << ": " << status;
    EXPECT_EQ(ReadTree(staging.Open()), ExpectedTree(tree)) << piece;
  }
}

TEST(Packer, DigestDoesNotDependOnFileOrder) {
  std::vector<PackFile> backwards = FilesOf(SampleTree());
  std::reverse(backwards.begin(), backwards.end());
  LayerText layer(1U << 20U);
  const auto packed =
      Pack(std::move(backwards), SampleFacts(), {.frame_bytes = 4096}, layer, std::stop_token());
  ASSERT_TRUE(packed.ok());
  const PackedSample forwards = PackTree(SampleTree());
  EXPECT_EQ(packed->digest, forwards.packed.digest);
  EXPECT_EQ(layer.text(), forwards.layer);
}

TEST(Packer, EveryDifferenceChangesTheDigest) {
  const Digest original = PackTree(SampleTree()).packed.digest;
  TestTree content = SampleTree();
  content["z"].content = "lasT";
  TestTree kind = SampleTree();
  kind["z"].kind = "triton";
  TestTree mtime = SampleTree();
  mtime["flashinfer/build.ninja"].mtime_ns += 1;
  TestTree name = SampleTree();
  name["zz"] = name["z"];
  name.erase("z");
  TestTree more = SampleTree();
  more["inductor/ab/new"] = {};
  for (const TestTree& tree : {content, kind, mtime, name, more}) {
    EXPECT_NE(PackTree(tree).packed.digest, original);
  }
}

TEST(Packer, FactsAreInTheDigestAndRoundTrip) {
  const PackedSample sample = PackTree(SampleTree());
  const auto config = ParseConfig(sample.packed.config_text);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->facts, SampleFacts());
  EXPECT_EQ(config->entries, sample.packed.config.entries);
  EXPECT_EQ(config->layers[0].frames, sample.packed.config.layers[0].frames);
}

TEST(Packer, LargeFileHasSeparateFrames) {
  const PackedSample sample = PackTree({{"a", {.content = "small"}},
                                        {"b", {.content = Noise(9'000, 3)}},
                                        {"c", {.content = "small"}}},
                                       4096);
  const auto& entries = sample.packed.config.entries;
  EXPECT_EQ(entries[0].frame, 0);
  EXPECT_EQ(entries[1].frame, 1);
  // 512 header + 9000 content + 216 padding = 3 frames.
  EXPECT_EQ(entries[2].frame, 4);
  EXPECT_EQ(sample.packed.config.layers[0].frames.size(), 6U);
}

TEST(Packer, TarUnpacksALayer) {
  const TestTree tree = SampleTree();
  const PackedSample sample = PackTree(tree);
  const TempDir dir;
  std::ofstream(dir / "layer.tar.zst", std::ios::binary) << sample.layer;
  ASSERT_TRUE(dir.Open().MakeDir("out", 0755).ok());
  const std::string command = "cd " + dir.path() +
                              " && zstd -q -t layer.tar.zst && zstd -q -d layer.tar.zst && "
                              "tar --warning=no-unknown-keyword -xf layer.tar -C out";
  ASSERT_EQ(std::system(command.c_str()), 0);  // NOLINT(cert-env33-c): a fixed command
  EXPECT_EQ(ReadTree(*dir.Open().OpenDir("out")), ExpectedTree(tree));
  const auto tar = fs::ReadFile(dir.Open(), "layer.tar", 1 << 20);
  ASSERT_TRUE(tar.ok());
  EXPECT_EQ(DigestOf(*tar), sample.packed.config.layers[0].diff_id);
}

TEST(Packer, RejectsInvalidTrees) {
  const struct {
    std::vector<std::string> paths;
    std::string message;
  } cases[] = {{{}, "no file to pack"},
               {{"/etc/passwd"}, "absolute"},
               {{"a/../b"}, "\"..\""},
               {{"a//b"}, "empty"},
               {{"a/./b"}, "\".\""},
               {{"a/"}, "empty"},
               {{"a", "a"}, "twice"},
               {{"a", "a/b"}, "a file and a directory"},
               {{"a\nb"}, "control characters"},
               {{"a\xff"}, "UTF-8"},
               {{std::string(300, 'n')}, "longer than 255"},
               {{std::string(1100, 'n')}, "longer than 1024"}};
  for (const auto& c : cases) {
    std::vector<PackFile> files;
    for (const std::string& path : c.paths) {
      files.push_back(FileOf(path, {.content = "x"}));
    }
    LayerText layer(1U << 20U);
    const auto packed = Pack(std::move(files), {}, {}, layer, std::stop_token());
    EXPECT_TRUE(absl::IsInvalidArgument(packed.status())) << c.message << packed.status();
    EXPECT_THAT(std::string(packed.status().message()), HasSubstr(c.message));
    EXPECT_TRUE(layer.text().empty());
  }
}

TEST(Packer, FileThatChangedItsSizeAborts) {
  for (const int64_t claimed : {3, 5}) {
    std::vector<PackFile> files = {FileOf("a", {.content = "four"})};
    files[0].bytes = claimed;
    LayerText layer(1U << 20U);
    const auto packed = Pack(std::move(files), {}, {}, layer, std::stop_token());
    EXPECT_TRUE(absl::IsAborted(packed.status())) << packed.status();
  }
}

TEST(Packer, ReturnsErrorsOfSourceAndSink) {
  std::vector<PackFile> files = {FileOf("a", {.content = Noise(10'000, 4)})};
  LayerText full(100);
  EXPECT_TRUE(absl::IsResourceExhausted(
      Pack(files, {}, {.frame_bytes = 4096}, full, std::stop_token()).status()));
  files[0].open = [] { return absl::PermissionDeniedError("no"); };
  LayerText layer(1U << 20U);
  EXPECT_TRUE(absl::IsPermissionDenied(Pack(files, {}, {}, layer, std::stop_token()).status()));
}

// Reports one byte less than it was given.
class LossyLayer : public LayerText {
 public:
  LossyLayer() : LayerText(1U << 20U) {}
  absl::StatusOr<Descriptor> End() override {
    text().pop_back();
    return LayerText::End();
  }
};

TEST(Packer, RejectsALayerThatTheSinkShortened) {
  LossyLayer layer;
  const auto packed = Pack(FilesOf(SampleTree()), {}, {}, layer, std::stop_token());
  EXPECT_TRUE(absl::IsDataLoss(packed.status())) << packed.status();
}

TEST(Packer, StopsOnRequest) {
  std::stop_source stop;
  stop.request_stop();
  LayerText layer(1U << 20U);
  EXPECT_TRUE(
      absl::IsCancelled(Pack(FilesOf(SampleTree()), {}, {}, layer, stop.get_token()).status()));
}

TEST(Packer, RejectsInvalidFrameSizes) {
  for (const int64_t frame_bytes : {0, 512, 4097, 1 << 30}) {
    LayerText layer(1U << 20U);
    EXPECT_TRUE(absl::IsInvalidArgument(
        Pack(FilesOf(SampleTree()), {}, {.frame_bytes = frame_bytes}, layer, std::stop_token())
            .status()));
  }
}

}  // namespace
}  // namespace cachewarm::bundle
