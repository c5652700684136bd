// SPDX-License-Identifier: Apache-2.0
// Files of equal content are stored once, with hard links, and unpacked as separate files.
#include "lib/bundle/pack/duplicates.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/bundle/buffer.h"
#include "lib/bundle/frame_codec.h"
#include "lib/bundle/tar.h"
#include "tests/unit/lib/bundle/raw_tar.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kFrame = 256 << 10;
constexpr size_t kLarge = 40'000;  // above the minimum for deduplication

// The cache of a tensor-parallel engine: each rank has a copy of most artifacts.
TestTree Ranks(size_t ranks) {
  TestTree tree;
  for (size_t rank = 0; rank < ranks; ++rank) {
    for (size_t i = 0; i < 6; ++i) {
      tree[fmt::format("vllm/rank_{}_0/artifact_{}", rank, i)] = {
          .content = Noise(kLarge + i, static_cast<uint32_t>(i))};
    }
    tree[fmt::format("vllm/rank_{}_0/own", rank)] = {
        .content = Noise(kLarge, static_cast<uint32_t>(100 + rank))};
    tree[fmt::format("vllm/rank_{}_0/small", rank)] = {.content = "small"};
  }
  return tree;
}

// Returns the members of a layer in order: path and target of the hard link.
std::vector<std::string> MembersOf(const PackedSample& sample) {
  std::vector<std::string> members;
  for (const Frame& frame : sample.packed.config.layers[0].frames) {
    Buffer raw;
    EXPECT_TRUE(FrameReader()
                    .Decompress(std::string_view(sample.layer)
                                    .substr(static_cast<size_t>(frame.offset),
                                            static_cast<size_t>(frame.bytes)),
                                static_cast<size_t>(frame.raw_bytes), raw)
                    .ok());
    TarReader reader(raw.view());
    while (true) {
      const auto member = reader.Next();
      EXPECT_TRUE(member.ok()) << member.status();
      if (!member.ok() || !member->has_value()) {
        break;
      }
      if ((*member)->type != MemberType::kDirectory) {
        members.push_back((*member)->path +
                          ((*member)->link.empty() ? "" : " = " + (*member)->link));
      }
    }
  }
  return members;
}

TEST(Duplicates, AreStoredAsHardLinksToTheFirst) {
  const std::string content = Noise(kLarge, 1);
  EXPECT_THAT(MembersOf(PackTree({{"a", {.content = content}},
                                  {"b", {.content = Noise(kLarge, 2)}},
                                  {"c", {.content = content}},
                                  {"d", {.content = content}}},
                                 kFrame)),
              ElementsAre("a", "b", "c = a", "d = a"));
}

TEST(Duplicates, AreUnpackedAsSeparateFiles) {
  const TestTree tree = Ranks(4);
  const PackedSample sample = PackTree(tree, kFrame);
  for (const bool check_contents : {false, true}) {
    const TempDir staging;
    const absl::Status status =
        Unpack(sample, staging.Open(), {.check_contents = check_contents, .sync = false});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(ReadTree(staging.Open()), ExpectedTree(tree));
    EXPECT_EQ(std::filesystem::hard_link_count(staging / "vllm/rank_3_0/artifact_0"), 1U)
        << "a write to one file must not change the others";
  }
}

TEST(Duplicates, OfAdditionalRanksAddFewBytes) {
  const PackedSample one = PackTree(Ranks(1), kFrame);
  const PackedSample eight = PackTree(Ranks(8), kFrame);
  EXPECT_LT(eight.layer.size(), one.layer.size() + 7 * (kLarge + 2000));
  EXPECT_EQ(RawBytes(eight.packed.config), 8 * RawBytes(one.packed.config));
  EXPECT_LT(FrameBytes(eight.packed.config), 4 * FrameBytes(one.packed.config));
}

TEST(Duplicates, BytesDoNotDependOnThreads) {
  const PackedSample one = PackTree(Ranks(5), kFrame, 1);
  for (const int threads : {2, 3, 8}) {
    const PackedSample other = PackTree(Ranks(5), kFrame, threads);
    EXPECT_EQ(other.packed.digest, one.packed.digest) << threads;
    EXPECT_EQ(other.layer, one.layer) << threads;
  }
}

TEST(Duplicates, ShareTheFrameOfTheirContent) {
  TestTree tree;
  for (int i = 0; i < 500; ++i) {
    tree[fmt::format("f{:03}", i)] = {.content = std::string(32 << 10, 'x')};
  }
  const PackedSample sample = PackTree(tree, 64 << 10);
  // 33,280 bytes with the header and 512 for each link: after 63 links the content is stored again.
  size_t stored = 0;
  for (const std::string& member : MembersOf(sample)) {
    stored += member.find(" = ") == std::string::npos ? 1U : 0U;
  }
  EXPECT_EQ(stored, 8U);
  for (const Frame& frame : sample.packed.config.layers[0].frames) {
    EXPECT_LE(frame.raw_bytes, 64 << 10);
  }
  const TempDir staging;
  ASSERT_TRUE(Unpack(sample, staging.Open()).ok());
  EXPECT_EQ(ReadTree(staging.Open()), ExpectedTree(tree));
}

TEST(Duplicates, RequireEqualMtimeAndSize) {
  const std::string content = Noise(kLarge, 1);
  EXPECT_THAT(MembersOf(PackTree({{"a", {.content = content}},
                                  {"b", {.content = content, .mtime_ns = 7}},
                                  {"c", {.content = content + "!"}},
                                  {"d", {.content = content, .mtime_ns = 7}}},
                                 kFrame)),
              ElementsAre("a", "b", "c", "d = b"));
}

TEST(Duplicates, SkipSmallFilesAndFilesThatFillAFrame) {
  const std::string small = Noise((32 << 10) - 1, 1);
  const std::string large = Noise(kFrame - 1023, 2);
  EXPECT_THAT(MembersOf(PackTree({{"a", {.content = small}},
                                  {"b", {.content = small}},
                                  {"c", {.content = large}},
                                  {"d", {.content = large}}},
                                 kFrame)),
              ElementsAre("a", "b", "c", "d"));
}

TEST(Duplicates, StoreLargestLinkableFileOnce) {
  const std::string content = Noise(kFrame - 1024, 2);
  const TestTree tree = {
      {"a", {.content = content}}, {"b", {.content = content}}, {"c", {.content = content}}};
  const PackedSample sample = PackTree(tree, kFrame);
  EXPECT_THAT(MembersOf(sample), ElementsAre("a", "b = a", "c"));
  EXPECT_EQ(sample.packed.config.layers[0].frames[0].raw_bytes, kFrame);
  const TempDir staging;
  ASSERT_TRUE(Unpack(sample, staging.Open()).ok());
  EXPECT_EQ(ReadTree(staging.Open()), ExpectedTree(tree));
}

TEST(Duplicates, StoreFileTwiceIfLinkHeaderDoesNotFit) {
  const std::string content = Noise(kFrame - 1024, 2);
  const TestTree tree = {{"a", {.content = content, .mtime_ns = 1'000}},
                         {"b", {.content = content, .mtime_ns = 1'000}}};
  const PackedSample sample = PackTree(tree, kFrame);
  EXPECT_EQ(RawBytes(sample.packed.config), 2 * (kFrame - 1024));
  EXPECT_GT(FrameBytes(sample.packed.config), 2 * (kFrame - 1024));
  const TempDir staging;
  ASSERT_TRUE(Unpack(sample, staging.Open()).ok());
  EXPECT_EQ(ReadTree(staging.Open()), ExpectedTree(tree));
}

TEST(Duplicates, LayerOfVllmTreeStoresDistinctArtifactsOnly) {
  // 17 artifacts in frames of 4 MB, most of them larger than half of one.
  TestTree tree = {{"vllm/artifact_00", {.content = Noise(2'800'000, 1)}},
                   {"vllm/artifact_15", {.content = Noise(2'110'000, 2)}},
                   {"vllm/artifact_16", {.content = Noise(830'000, 3)}}};
  for (int i = 1; i < 15; ++i) {
    tree[fmt::format("vllm/artifact_{:02}", i)] = {.content = Noise(2'110'000, 4)};
  }
  const PackedSample sample = PackTree(tree, PackOptions().frame_bytes);
  const int64_t distinct = 2'800'000 + 2 * 2'110'000 + 830'000;
  EXPECT_LT(FrameBytes(sample.packed.config), distinct + (64 << 10));
  EXPECT_LT(sample.layer.size(), static_cast<size_t>(distinct + (64 << 10)));
  const TempDir staging;
  const absl::Status status = Unpack(sample, staging.Open());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ReadTree(staging.Open()), ExpectedTree(tree));
}

TEST(Duplicates, LinksKeepLongAndNonAsciiPaths) {
  const std::string content = Noise(kLarge, 1);
  const TestTree tree = {
      {std::string(200, 'p') + "/" + std::string(200, 'q'),
       {.content = content, .mtime_ns = 1'000}},
      {std::string(200, 'p') + "/\xc3\xa9t\xc3\xa9", {.content = content, .mtime_ns = 1'000}},
      {"\xc3\xa9", {.content = content, .mtime_ns = 1'000}}};
  const PackedSample sample = PackTree(tree, kFrame);
  const TempDir staging;
  const absl::Status status = Unpack(sample, staging.Open());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ReadTree(staging.Open()), ExpectedTree(tree));
  EXPECT_THAT(MembersOf(sample)[1], HasSubstr(" = ppp"));
}

TEST(Duplicates, AreExtractedByTar) {
  const TestTree tree = Ranks(3);
  const PackedSample sample = PackTree(tree, kFrame);
  const TempDir dir;
  std::ofstream(dir / "layer.tar.zst", std::ios::binary) << sample.layer;
  ASSERT_TRUE(dir.Open().MakeDir("out", 0755).ok());
  const std::string command =
      "cd " + dir.path() + " && zstd -q -d -c layer.tar.zst | tar -x -C out";
  ASSERT_EQ(std::system(command.c_str()), 0);  // NOLINT(cert-env33-c): a fixed command
  EXPECT_EQ(ReadTree(*dir.Open().OpenDir("out")), ExpectedTree(tree));
}

TEST(Duplicates, FileThatChangesBeforeItIsStoredAborts) {
  std::vector<PackFile> files =
      FilesOf({{"a", {.content = Noise(kLarge, 1)}}, {"b", {.content = Noise(kLarge, 1)}}});
  int opened = 0;
  files[0].open = [&opened]() -> absl::StatusOr<std::unique_ptr<Source>> {
    // The first two reads are those of the head and of the whole file.
    return std::make_unique<OwnedSource>(Noise(kLarge, ++opened <= 2 ? 1 : 9));
  };
  LayerText layer(1U << 20U);
  const auto packed = Pack(std::move(files), {}, {.frame_bytes = kFrame}, layer, std::stop_token());
  EXPECT_TRUE(absl::IsAborted(packed.status())) << packed.status();
  EXPECT_THAT(std::string(packed.status().message()), HasSubstr("\"a\""));
}

// Counts the bytes that are read.
class CountedSource : public Source {
 public:
  CountedSource(std::string text, std::atomic<size_t>& count)
      : source_(std::move(text)), count_(count) {}
  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    absl::StatusOr<size_t> got = source_.Read(buffer);
    count_ += got.value_or(0);
    return got;
  }

 private:
  OwnedSource source_;
  std::atomic<size_t>& count_;
};

TEST(Duplicates, FilesAreReadWholeOnlyIfTheirHeadsAreEqual) {
  constexpr size_t kHead = 4096;
  std::map<std::string, std::string> contents;
  for (const char* path : {"a", "b", "c"}) {
    contents[path] = Noise(kLarge, 1);
  }
  contents["b"][kHead - 1] ^= 1;
  contents["c"][kHead] ^= 1;
  std::map<std::string, std::atomic<size_t>> read;
  TestTree tree;
  for (const auto& [path, text] : contents) {
    tree[path] = {.content = text};
    read[path] = 0;
  }
  std::vector<PackFile> files = FilesOf(tree);
  for (PackFile& file : files) {
    file.open = [&, path = file.path]() -> absl::StatusOr<std::unique_ptr<Source>> {
      return std::make_unique<CountedSource>(contents.at(path), read.at(path));
    };
  }
  LayerText layer(1U << 20U);
  const auto packed = Pack(std::move(files), {}, {.frame_bytes = kFrame}, layer, std::stop_token());
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(read.at("a"), kHead + 2 * kLarge);
  EXPECT_EQ(read.at("b"), kHead + kLarge) << "the last byte of its head differs";
  EXPECT_EQ(read.at("c"), kHead + 2 * kLarge);
  EXPECT_THAT(MembersOf(PackTree(tree, kFrame)), ElementsAre("a", "b", "c"));
}

TEST(Duplicates, FileThatBecomesShorterThanItsHeadAborts) {
  std::vector<PackFile> files =
      FilesOf({{"a", {.content = Noise(kLarge, 1)}}, {"b", {.content = Noise(kLarge, 1)}}});
  files[1].open = [] { return std::make_unique<OwnedSource>(Noise(4095, 1)); };
  LayerText layer(1U << 20U);
  const auto packed = Pack(std::move(files), {}, {.frame_bytes = kFrame}, layer, std::stop_token());
  EXPECT_TRUE(absl::IsAborted(packed.status())) << packed.status();
  EXPECT_THAT(std::string(packed.status().message()), HasSubstr("\"b\""));
}

TEST(Duplicates, SearchStopsOnRequest) {
  auto tree = ArrangeTree(FilesOf(Ranks(2)), {});
  ASSERT_TRUE(tree.ok());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(FindDuplicates(*tree, kFrame, 2, stop.get_token())));
}

// ---- untrusted links ----------------------------------------------------------------------------

struct UntrustedLink {
  const char* name;
  std::vector<std::vector<RawMember>> frames;
  std::vector<Entry> entries;
  const char* message;
};

std::vector<UntrustedLink> UntrustedLinks() {
  const auto link = [](const std::string& path, const std::string& to) {
    return RawMember{.path = path, .type = '1', .link = to};
  };
  return {
      {"out",
       {{{.path = "a", .content = "x"}, link("b", "../a")}},
       {EntryOf("a", "x"), EntryOf("b", "x")},
       "is a hard link whose target is not a valid path"},
      {"absolute",
       {{link("b", "/etc/passwd")}},
       {EntryOf("b", "x")},
       "whose target is not a valid path"},
      {"to nothing",
       {{{.path = "a", .content = "x"}, link("b", "c")}},
       {EntryOf("a", "x"), EntryOf("b", "x")},
       "which is not an earlier file of its frame"},
      {"to itself", {{link("b", "b")}}, {EntryOf("b", "x")}, "not an earlier file"},
      {"forward",
       {{link("a", "b"), {.path = "b", .content = "x"}}},
       {EntryOf("a", "x"), EntryOf("b", "x")},
       "not an earlier file"},
      {"to a directory",
       {{{.path = "d", .type = '5'}, {.path = "d/a", .content = "x"}, link("e", "d")}},
       {EntryOf("d/a", "x"), EntryOf("e", "x")},
       "not an earlier file"},
      {"into another frame",
       {{{.path = "a", .content = "x"}}, {link("b", "a")}},
       {EntryOf("a", "x"), EntryOf("b", "x", 1)},
       "not an earlier file"},
      {"of another length",
       {{{.path = "a", .content = "xy"}, link("b", "a")}},
       {EntryOf("a", "xy"), EntryOf("b", "x")},
       "does not match its sha256"},
      {"that claims another content",
       {{{.path = "a", .content = "x"}, link("b", "a")}},
       {EntryOf("a", "x"), EntryOf("b", "y")},
       "does not match its sha256"},
      {"with content",
       {{{.path = "a", .content = "x"}, {.path = "b", .type = '1', .content = "y", .link = "a"}}},
       {EntryOf("a", "x"), EntryOf("b", "x")},
       ""},
      {"that no entry names",
       {{{.path = "a", .content = "x"}, link("b", "a")}},
       {EntryOf("a", "x")},
       "the entry list does not name it"},
  };
}

TEST(UntrustedLinks, AreRefusedBeforeAnyFileOfTheirFrameIsWritten) {
  for (const UntrustedLink& each : UntrustedLinks()) {
    std::vector<std::string> frames;
    for (const auto& members : each.frames) {
      frames.push_back(RawTar(members));
    }
    frames.push_back(TarEnd());
    const RawBundle bundle = BundleOf(frames, each.entries);
    const TempDir staging;
    const absl::Status status = Unpack({bundle.config, bundle.manifest, bundle.layer},
                                       staging.Open(), {.check_contents = false, .sync = false});
    EXPECT_FALSE(status.ok()) << each.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(each.message)) << each.name;
    EXPECT_FALSE(ReadTree(staging.Open()).contains("b")) << each.name;
  }
}

TEST(UntrustedLinks, LinkBombIsRefusedByRatio) {
  const std::string content(400'000, 'x');
  std::vector<RawMember> members = {{.path = "a", .content = content}};
  std::vector<Entry> entries = {EntryOf("a", content)};
  for (int i = 0; i < 2'000; ++i) {
    members.push_back({.path = fmt::format("b{:04}", i), .type = '1', .link = "a"});
    entries.push_back(EntryOf(members.back().path, content));
  }
  const RawBundle bundle = BundleOf({RawTar(members), TarEnd()}, entries);
  const TempDir staging;
  const absl::Status status =
      Unpack({bundle.config, bundle.manifest, bundle.layer}, staging.Open());
  EXPECT_THAT(std::string(status.message()), HasSubstr("files of 800400000 bytes"));
}

}  // namespace
}  // namespace cachewarm::bundle
