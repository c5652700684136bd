// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/bundle/pack/difference.h"
#include "tests/unit/lib/bundle/layered.h"

// Bundles that reuse the layers of an older one.
namespace cachewarm::bundle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TestTree Changed(TestTree tree) {
  tree["triton/new/kernel.cubin"] = {.content = Noise(3000, 77)};
  tree["triton/7/d2/f7"].content = Noise(1500, 78);
  tree["triton/0/d0/f0"].content += "more than a frame now" + Noise(30'000, 79);
  tree.erase("triton/1/d1/f1");
  std::erase_if(tree, [](const auto& file) { return file.first.starts_with("triton/5/"); });
  return tree;
}

TEST(Update, UnpacksNewTreeFromOldAndNewLayers) {
  const Made base = Make(ManyFiles());
  const TestTree tree = Changed(ManyFiles());
  const Made update = Make(tree, &base);
  ASSERT_EQ(update.bundle.manifest.layers.size(), 2U);
  EXPECT_EQ(update.bundle.manifest.layers[0], base.bundle.manifest.layers[0]);
  EXPECT_EQ(Unpacked(update), ExpectedTree(tree));
}

TEST(Update, NewLayerHoldsOnlyNewFiles) {
  const Made base = Make(ManyFiles());
  const Made update = Make(Changed(ManyFiles()), &base);
  EXPECT_LT(update.new_bytes, base.new_bytes / 4);
}

TEST(Update, GivesTheSameTreeToOciTools) {
  const Made base = Make(ManyFiles());
  const TestTree tree = Changed(ManyFiles());
  EXPECT_EQ(AsOthersSeeIt(Make(tree, &base)), Contents(tree));
}

TEST(Update, OfAnUpdateUnpacksNewTree) {
  const Made first = Make(ManyFiles());
  const Made second = Make(Changed(ManyFiles()), &first);
  TestTree tree = Changed(ManyFiles());
  tree["triton/1/d1/f1"] = {.content = "back again"};
  tree.erase("triton/new/kernel.cubin");
  tree["triton/8/d3/f8"].content = "third";
  const Made third = Make(tree, &second);
  ASSERT_EQ(third.bundle.manifest.layers.size(), 3U);
  EXPECT_EQ(Unpacked(third), ExpectedTree(tree));
  EXPECT_EQ(AsOthersSeeIt(third), Contents(tree));
}

TEST(Update, BytesDoNotDependOnThreads) {
  const Made base = Make(ManyFiles());
  const Made one = Make(Changed(ManyFiles()), &base, 1);
  for (const int threads : {2, 3, 8}) {
    const Made other = Make(Changed(ManyFiles()), &base, threads);
    EXPECT_EQ(other.bundle.digest, one.bundle.digest) << threads;
    EXPECT_EQ(other.layers, one.layers) << threads;
  }
}

TEST(Update, OfUnchangedTreeIsTheSameBundle) {
  const Made base = Make(ManyFiles());
  const Made again = Make(ManyFiles(), &base);
  EXPECT_EQ(again.bundle.digest, base.bundle.digest);
  EXPECT_EQ(again.new_bytes, 0);
  const Made update = Make(Changed(ManyFiles()), &base);
  EXPECT_EQ(Make(Changed(ManyFiles()), &update).bundle.digest, update.bundle.digest);
}

TEST(Update, ThatOnlyRemovesAddsLayerOfWhiteouts) {
  const Made base = Make(ManyFiles());
  TestTree tree = ManyFiles();
  tree.erase("triton/1/d1/f1");
  const Made update = Make(tree, &base);
  ASSERT_EQ(update.bundle.manifest.layers.size(), 2U);
  EXPECT_EQ(Unpacked(update), ExpectedTree(tree));
  EXPECT_EQ(AsOthersSeeIt(update), Contents(tree));
}

TEST(Update, FileMayBecomeDirectoryAndViceVersa) {
  TestTree before = {{"a", {.content = "file"}},
                     {"b/x", {.content = "below"}},
                     {"b/y", {.content = "below too"}},
                     {"large", {.content = Noise(9000, 1)}}};
  TestTree after = {{"a/x", {.content = "below"}},
                    {"b", {.content = "file"}},
                    {"large", {.content = Noise(9000, 1)}}};
  const Made base = Make(before);
  const Made update = Make(after, &base);
  ASSERT_EQ(update.bundle.manifest.layers.size(), 2U);
  EXPECT_EQ(Unpacked(update), ExpectedTree(after));
  EXPECT_EQ(AsOthersSeeIt(update), Contents(after));
}

TEST(Update, ComparesContentKindAndMtime) {
  const TestTree tree = {{"a", {.content = "same", .mtime_ns = 5}},
                         {"b", {.content = "same"}},
                         {"c", {.content = "same"}},
                         {"large", {.content = Noise(9000, 1)}}};
  const Made base = Make(tree);
  const std::pair<std::string, std::function<void(TestTree&)>> changes[] = {
      {"content", [](TestTree& t) { t["b"].content = "other"[0] + std::string("ame"); }},
      {"kind", [](TestTree& t) { t["b"].kind = "other"; }},
      {"mtime", [](TestTree& t) { t["a"].mtime_ns = 6; }},
  };
  for (const auto& [name, change] : changes) {
    TestTree after = tree;
    change(after);
    const Made update = Make(after, &base);
    EXPECT_EQ(update.bundle.manifest.layers.size(), 2U) << name;
    EXPECT_EQ(Unpacked(update), ExpectedTree(after)) << name;
  }
}

TEST(Update, ReadsContentStoredUnderRemovedPath) {
  // Both have the content of "a" in the base, the second as a hard link.
  const std::string content = Noise(5000, 1);
  TestTree tree = {{"a", {.content = content}},
                   {"b", {.content = content}},
                   {"large", {.content = Noise(90'000, 2)}}};
  const Made base = Make(tree, nullptr, 2, 64 << 10);
  tree.erase("a");
  tree["c"] = {.content = content};
  const Made update = Make(tree, &base, 2, 64 << 10);
  ASSERT_EQ(update.bundle.manifest.layers.size(), 2U);
  EXPECT_EQ(Unpacked(update), ExpectedTree(tree));
  EXPECT_EQ(AsOthersSeeIt(update), Contents(tree));
}

TEST(Update, PacksWholeTreeIfMostIsNewOrRemoved) {
  const Made base = Make({{"a", {.content = Noise(5000, 1)}}, {"b", {.content = Noise(5000, 2)}}});
  const TestTree mostly_new = {{"a", {.content = Noise(5000, 1)}},
                               {"c", {.content = Noise(20'000, 3)}}};
  EXPECT_EQ(Make(mostly_new, &base).bundle.digest, Make(mostly_new).bundle.digest);
  const TestTree mostly_gone = {{"a", {.content = Noise(5000, 1)}}};
  EXPECT_EQ(Make(mostly_gone, &base).bundle.digest, Make(mostly_gone).bundle.digest);
}

TEST(Update, PacksWholeTreeIfBaseHasManyLayers) {
  TestTree tree = {{"large", {.content = Noise(200'000, 1)}}};
  Made made = Make(tree);
  size_t most = 1;
  for (int i = 0; i < 20; ++i) {
    tree[fmt::format("new/{}", i)] = {.content = fmt::format("{}", i)};
    made = Make(tree, &made);
    most = std::max(most, made.bundle.manifest.layers.size());
    EXPECT_EQ(Unpacked(made), ExpectedTree(tree));
  }
  EXPECT_EQ(most, 8U);
}

TEST(Update, FailsIfAFileCannotBeRead) {
  const Made base = Make(ManyFiles());
  std::vector<PackFile> files = FilesOf(ManyFiles());
  files[5].open = [] { return absl::UnavailableError("gone"); };
  LayerText layer(64U << 20U);
  const auto packed =
      Pack(std::move(files), SampleFacts(), {.frame_bytes = 4096, .base = &base.bundle}, layer, {});
  EXPECT_TRUE(absl::IsUnavailable(packed.status())) << packed.status();
}

TEST(Update, StopsOnRequest) {
  const Made base = Make(ManyFiles());
  std::stop_source stop;
  stop.request_stop();
  LayerText layer(64U << 20U);
  const auto packed = Pack(FilesOf(ManyFiles()), SampleFacts(),
                           {.frame_bytes = 4096, .base = &base.bundle}, layer, stop.get_token());
  EXPECT_TRUE(absl::IsCancelled(packed.status())) << packed.status();
}

TEST(Update, ReadsOnlyNewLayerIfTreeHasTheBase) {
  const Made base = Make(ManyFiles());
  const TestTree tree = Changed(ManyFiles());
  const Made update = Make(tree, &base);
  const TempDir staging;
  const fs::Dir dir = staging.Open();
  // Files of the base that the new tree reuses.
  PresentEntries present;
  TestTree placed;
  for (const Entry& entry : update.bundle.config.entries) {
    const bool is_old = entry.frame < FrameCount(base.bundle.config);
    present.push_back(is_old);
    if (is_old) {
      placed[entry.path] = tree.at(entry.path);
    }
  }
  ASSERT_TRUE(Unpack(PackTree(placed), dir).ok());
  UnpackOptions options{.present = present, .keep_existing = true};
  Unpacker unpacker(update.bundle.config, update.bundle.manifest, dir, options);
  ASSERT_TRUE(unpacker.Start().ok());
  EXPECT_THAT(unpacker.runs(),
              ElementsAre(FrameRun{.layer = 1, .offset = 0, .bytes = update.new_bytes}));
  ASSERT_TRUE(unpacker.Write(update.layers.substr(base.layers.size())).ok());
  const absl::Status status = unpacker.Finish();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ReadTree(dir), ExpectedTree(tree));
}

TEST(Update, ReadsOnlyNeededFramesOfOldLayers) {
  const Made base = Make(ManyFiles());
  const Made update = Make(Changed(ManyFiles()), &base);
  PresentEntries present(update.bundle.config.entries.size(), true);
  present[3] = false;
  const TempDir staging;
  const fs::Dir dir = staging.Open();
  Unpacker unpacker(update.bundle.config, update.bundle.manifest, dir, {.present = present});
  ASSERT_TRUE(unpacker.Start().ok());
  ASSERT_EQ(unpacker.runs().size(), 1U);
  EXPECT_EQ(unpacker.runs()[0].layer, 0U);
  EXPECT_LT(unpacker.runs()[0].bytes, base.new_bytes / 10);
}

TEST(Update, OnlyOldLayersMayHoldUnlistedFiles) {
  const Made base = Make(ManyFiles());
  Made update = Make(Changed(ManyFiles()), &base);
  std::vector<Entry>& entries = update.bundle.config.entries;
  const auto in_new_layer = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
    return entry.frame >= FrameCount(base.bundle.config);
  });
  ASSERT_NE(in_new_layer, entries.end());
  entries.erase(in_new_layer);
  const TempDir staging;
  const absl::Status status =
      Unpack({update.bundle.config, update.bundle.manifest, update.layers}, staging.Open());
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the entry list does not name it in this frame"));
}

TEST(Update, RejectsFileWithWhiteoutName) {
  LayerText layer(1U << 20U);
  const auto packed = Pack(FilesOf({{"a/.wh.b", {.content = "x"}}}), SampleFacts(), {}, layer, {});
  EXPECT_TRUE(absl::IsInvalidArgument(packed.status()));
  EXPECT_THAT(std::string(packed.status().message()), HasSubstr(".wh."));
}

TEST(WhiteoutsOf, NameTheTopmostRemovedDirectory) {
  const auto of = [](const TestTree& before, const TestTree& after) {
    return WhiteoutsOf(Make(before).bundle.config, *ArrangeTree(FilesOf(after), {}));
  };
  const TestTree before = {{"a/b/c", {}}, {"a/b/d", {}}, {"a/e", {}}, {"f", {}}, {"g/h", {}}};
  EXPECT_THAT(of(before, before), IsEmpty());
  EXPECT_THAT(of(before, {{"a/e", {}}, {"f", {}}}), ElementsAre(".wh.g", "a/.wh.b"));
  EXPECT_THAT(of(before, {{"a/b/c", {}}, {"g/h", {}}}),
              ElementsAre(".wh.f", "a/.wh.e", "a/b/.wh.d"));
  EXPECT_THAT(of(before, {{"a/b", {}}, {"a/e", {}}, {"f/x", {}}, {"g/h", {}}}), IsEmpty());
  EXPECT_THAT(of(before, {{"a", {}}}), ElementsAre(".wh.f", ".wh.g"));
}

}  // namespace
}  // namespace cachewarm::bundle
