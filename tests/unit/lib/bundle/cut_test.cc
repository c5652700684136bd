// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/pack/cut.h"

#include <numeric>
#include <ostream>

#include "gtest/gtest.h"

namespace cachewarm::bundle {

void PrintTo(const Cut& cut, std::ostream* out) {
  *out << "{" << cut.first << " x" << cut.members << " from " << cut.from << ", " << cut.bytes
       << "}";
}

namespace {

constexpr int64_t kFrame = 4096;

TEST(CutTar, CutsDependOnlyOnSizes) {
  const struct {
    const char* name;
    std::vector<int64_t> members;
    std::vector<Cut> cuts;
  } cases[] = {
      {"nothing but the end", {}, {{0, 0, 0, 1024}}},
      {"one small member", {512}, {{0, 1, 0, 512}, {1, 0, 0, 1024}}},
      {"as many as fit",
       {1024, 1024, 2048, 512},
       {{0, 3, 0, 4096}, {3, 1, 0, 512}, {4, 0, 0, 1024}}},
      {"the next does not fit", {2048, 2560}, {{0, 1, 0, 2048}, {1, 1, 0, 2560}, {2, 0, 0, 1024}}},
      {"exactly a frame", {4096, 512}, {{0, 1, 0, 4096}, {1, 1, 0, 512}, {2, 0, 0, 1024}}},
      {"larger than a frame",
       {512, 9728, 512},
       {{0, 1, 0, 512},
        {1, 1, 0, 4096},
        {1, 1, 4096, 4096},
        {1, 1, 8192, 1536},
        {2, 1, 0, 512},
        {3, 0, 0, 1024}}},
      {"two frames exactly, and first",
       {8192, 512},
       {{0, 1, 0, 4096}, {0, 1, 4096, 4096}, {1, 1, 0, 512}, {2, 0, 0, 1024}}},
      {"large ones side by side",
       {4608, 4608},
       {{0, 1, 0, 4096}, {0, 1, 4096, 512}, {1, 1, 0, 4096}, {1, 1, 4096, 512}, {2, 0, 0, 1024}}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(CutTar(c.members, kFrame), c.cuts) << c.name;
  }
}

TEST(CutTar, AssignsEveryByteToOneFrame) {
  std::vector<int64_t> members;
  for (int64_t i = 0; i < 500; ++i) {
    members.push_back(512 * (1 + (i * i * 7) % 23));
  }
  const std::vector<Cut> cuts = CutTar(members, kFrame);
  int64_t bytes = 0;
  size_t next = 0;
  for (const Cut& cut : cuts) {
    EXPECT_LE(cut.bytes, kFrame);
    EXPECT_GT(cut.bytes, 0);
    EXPECT_EQ(cut.first, cut.from > 0 ? next - 1 : next);
    next = cut.first + cut.members;
    bytes += cut.bytes;
  }
  EXPECT_EQ(next, members.size());
  EXPECT_EQ(bytes, std::accumulate(members.begin(), members.end(), int64_t{1024}));
}

TEST(CutWithMates, KeepsOrderWithoutMates) {
  const std::vector<int64_t> members = {512, 9000 / 512 * 512, 1024, 3072, 512};
  const OrderedCuts cutting = CutWithMates(members, {0, 1, 2, 3, 4}, kFrame);
  EXPECT_EQ(cutting.order, (std::vector<size_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(cutting.cuts, CutTar(members, kFrame));
}

TEST(CutWithMates, PutsMatesIntoOneFrameInOrder) {
  const OrderedCuts cutting =
      CutWithMates({1024, 1024, 3072, 512, 512, 1024}, {0, 1, 2, 0, 1, 5}, kFrame);
  EXPECT_EQ(cutting.order, (std::vector<size_t>{0, 1, 3, 4, 2, 5}));
  EXPECT_EQ(cutting.cuts, (std::vector<Cut>{{0, 4, 0, 3072}, {4, 2, 0, 4096}, {6, 0, 0, 1024}}));
}

TEST(CutWithMates, SplitsLargeMemberIntoItsOwnFrames) {
  const OrderedCuts cutting = CutWithMates({512, 4608, 512, 512}, {0, 1, 0, 3}, kFrame);
  EXPECT_EQ(cutting.order, (std::vector<size_t>{0, 2, 1, 3}));
  EXPECT_EQ(
      cutting.cuts,
      (std::vector<Cut>{
          {0, 2, 0, 1024}, {2, 1, 0, 4096}, {2, 1, 4096, 512}, {3, 1, 0, 512}, {4, 0, 0, 1024}}));
}

}  // namespace
}  // namespace cachewarm::bundle
