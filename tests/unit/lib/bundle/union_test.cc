// SPDX-License-Identifier: Apache-2.0
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/lib/bundle/layered.h"

// Bundles that retain the files of an older one, for the ranks of a group.
namespace cachewarm::bundle {
namespace {

using ::testing::HasSubstr;

TestTree RankTree(int rank) {
  const auto seed = static_cast<uint32_t>(rank);
  return {{fmt::format("rank_{}/model.bin", rank), {.content = Noise(9000, seed)}},
          {fmt::format("rank_{}/triton/kernel.cubin", rank), {.content = Noise(700, seed + 100)}},
          {"shared/index", {.content = "the same everywhere"}}};
}

TestTree UnionOf(TestTree older, const TestTree& newer) {
  for (const auto& [path, file] : newer) {
    older[path] = file;
  }
  return older;
}

Made Add(const TestTree& tree, const Made& base, int threads = DefaultThreads()) {
  return MakeWith(tree, &base, {.frame_bytes = 4096, .threads = threads, .keep_base = true});
}

absl::Status ErrorOf(const TestTree& tree, const PackOptions& options) {
  LayerText layer(64U << 20U);
  return Pack(FilesOf(tree), SampleFacts(), options, layer, std::stop_token()).status();
}

TEST(Union, ContainsFilesOfEveryRank) {
  Made made = Make(RankTree(0));
  TestTree expected = RankTree(0);
  for (int rank = 1; rank < 4; ++rank) {
    made = Add(RankTree(rank), made);
    expected = UnionOf(expected, RankTree(rank));
  }
  EXPECT_EQ(made.bundle.manifest.layers.size(), 4U);
  EXPECT_EQ(Unpacked(made), ExpectedTree(expected));
  EXPECT_EQ(AsOthersSeeIt(made), Contents(expected));
}

TEST(Union, WithKnownFilesIsTheSameBundle) {
  const Made both = Add(RankTree(1), Make(RankTree(0)));
  for (const int rank : {0, 1}) {
    const Made again = Add(RankTree(rank), both);
    EXPECT_EQ(again.bundle.digest, both.bundle.digest) << rank;
    EXPECT_EQ(again.new_bytes, 0) << rank;
  }
}

TEST(Union, BytesDoNotDependOnThreads) {
  const Made base = Make(ManyFiles());
  const Made one = Add(RankTree(1), base, 1);
  for (const int threads : {2, 5}) {
    EXPECT_EQ(Add(RankTree(1), base, threads).bundle.digest, one.bundle.digest) << threads;
  }
}

TEST(Union, UsesNewerFileForSharedPath) {
  TestTree newer = RankTree(1);
  newer["shared/index"].content = "of the newer one";
  const Made made = Add(newer, Make(RankTree(0)));
  const TestTree expected = UnionOf(RankTree(0), newer);
  EXPECT_EQ(Unpacked(made), ExpectedTree(expected));
  EXPECT_EQ(AsOthersSeeIt(made), Contents(expected));
}

TEST(Union, DropsFileThatBecameADirectory) {
  const Made base = Make({{"a", {.content = "file"}},
                          {"b/x", {.content = "below"}},
                          {"b/y", {.content = "below too"}},
                          {"c/x", {.content = "stays"}}});
  const TestTree newer = {{"a/x", {.content = "below"}}, {"b", {.content = "file"}}};
  const Made made = Add(newer, base);
  TestTree expected = newer;
  expected["c/x"] = {.content = "stays"};
  EXPECT_EQ(Unpacked(made), ExpectedTree(expected));
  EXPECT_EQ(AsOthersSeeIt(made), Contents(expected));
}

TEST(Union, RetainsFilesOfAnUpdatedBase) {
  TestTree tree = ManyFiles();
  const Made first = Make(tree);
  tree.erase("triton/1/d1/f1");
  const Made second = Make(tree, &first);
  const Made made = Add(RankTree(1), second);
  const TestTree expected = UnionOf(tree, RankTree(1));
  EXPECT_EQ(Unpacked(made), ExpectedTree(expected));
  EXPECT_EQ(AsOthersSeeIt(made), Contents(expected));
}

TEST(Union, OfLargestGroupFitsTheFormat) {
  Made made = Make({{"rank_0", {.content = "0"}}});
  TestTree expected = {{"rank_0", {.content = "0"}}};
  for (int rank = 1; rank < 64; ++rank) {
    const TestTree own = {{fmt::format("rank_{}", rank), {.content = fmt::format("{}", rank)}}};
    made = Add(own, made);
    expected = UnionOf(expected, own);
  }
  EXPECT_EQ(made.bundle.manifest.layers.size(), 64U);
  EXPECT_TRUE(ParseManifest(*WriteManifest(made.bundle.manifest)).ok());
  EXPECT_EQ(Unpacked(made), ExpectedTree(expected));
}

TEST(Union, EnforcesLimitsOnTheWhole) {
  const Made base = Make(RankTree(0));
  const PackOptions options{.base = &base.bundle, .keep_base = true};
  PackOptions few = options;
  few.limits.entries_max = 4;
  EXPECT_THAT(std::string(ErrorOf(RankTree(1), few).message()), HasSubstr("5 files, more than 4"));
  PackOptions small = options;
  small.limits.total_bytes_max = 15'000;
  EXPECT_THAT(std::string(ErrorOf(RankTree(1), small).message()), HasSubstr("limits.bytes"));
  EXPECT_TRUE(ErrorOf(RankTree(1), options).ok());
}

TEST(Union, RequiresABase) {
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf(RankTree(1), {.keep_base = true})));
}

}  // namespace
}  // namespace cachewarm::bundle
