// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/unpack/needed.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cachewarm::bundle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kRaw = 4096;

// Returns layers with the given numbers of frames, of 10 packed bytes each.
Config Layers(const std::vector<int>& frames) {
  Config config;
  for (const int count : frames) {
    LayerIndex& layer = config.layers.emplace_back();
    for (int i = 0; i < count; ++i) {
      layer.frames.push_back({.offset = int64_t{10} * i, .bytes = 10, .raw_bytes = kRaw});
    }
  }
  return config;
}

Entry At(std::string path, int64_t frame, int64_t bytes = 100) {
  return {.path = std::move(path), .kind = "triton", .bytes = bytes, .frame = frame};
}

TEST(NeededFrames, EmptyTreeNeedsWholeNewestLayer) {
  Config config = Layers({4});
  config.entries = {At("a", 0), At("b", 2)};
  EXPECT_THAT(NeededFrames(config, {}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(NeededFrames(config, {false, false}), ElementsAre(0, 1, 2, 3));
}

TEST(NeededFrames, CompleteTreeNeedsNone) {
  Config config = Layers({2, 2});
  config.entries = {At("a", 0), At("b", 2)};
  EXPECT_THAT(NeededFrames(config, {true, true}), IsEmpty());
}

TEST(NeededFrames, AreThoseWithMissingFiles) {
  Config config = Layers({5});
  config.entries = {At("a", 0), At("b", 1), At("c", 1), At("d", 3)};
  EXPECT_THAT(NeededFrames(config, {true, true, false, true}), ElementsAre(1));
  EXPECT_THAT(NeededFrames(config, {false, true, true, false}), ElementsAre(0, 3));
}

TEST(NeededFrames, OmitObsoleteFilesOfOlderLayers) {
  Config config = Layers({4, 2});
  config.entries = {At("a", 1), At("b", 4)};
  EXPECT_THAT(NeededFrames(config, {}), ElementsAre(1, 4, 5));
  EXPECT_THAT(NeededFrames(config, {true, false}), ElementsAre(4, 5));
}

TEST(NeededFrames, IncludeLayerOfWhiteouts) {
  Config config = Layers({2, 1});
  config.entries = {At("a", 0)};
  EXPECT_THAT(NeededFrames(config, {true}), ElementsAre(2));
}

TEST(NeededFrames, IncludeAllFramesOfALargeFile) {
  Config config = Layers({6});
  config.entries = {At("a", 0), At("b", 1, 3 * kRaw), At("c", 5)};
  EXPECT_THAT(NeededFrames(config, {true, false, true}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(NeededFrames(config, {false, true, false}), ElementsAre(0, 5));
}

TEST(NeededFrames, LargeFileEndsWithItsLayer) {
  Config config = Layers({2, 2});
  config.entries = {At("a", 0, 2 * kRaw), At("b", 3)};
  EXPECT_THAT(NeededFrames(config, {false, true}), ElementsAre(0, 1));
}

TEST(RunsOf, CombinesContiguousFrames) {
  const Config config = Layers({4, 3});
  EXPECT_THAT(RunsOf(config, {0, 1, 3, 4, 5}),
              ElementsAre(FrameRun{.layer = 0, .offset = 0, .bytes = 20},
                          FrameRun{.layer = 0, .offset = 30, .bytes = 10},
                          FrameRun{.layer = 1, .offset = 0, .bytes = 20}));
  EXPECT_THAT(RunsOf(config, {}), IsEmpty());
}

TEST(FirstFrameOfNewestLayer, CountsFramesOfOlderLayers) {
  EXPECT_EQ(FirstFrameOfNewestLayer(Layers({4, 3, 2})), 7);
  EXPECT_EQ(FirstFrameOfNewestLayer(Layers({4})), 0);
  EXPECT_EQ(FirstFrameOfNewestLayer({}), 0);
  EXPECT_EQ(FrameCount(Layers({4, 3, 2})), 9);
}

}  // namespace
}  // namespace cachewarm::bundle
