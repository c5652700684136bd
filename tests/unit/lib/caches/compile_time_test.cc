// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "lib/caches/cache_table.h"
#include "lib/caches/file_check.h"

namespace cachewarm::caches {
namespace {

std::string Attribute(const std::string& name, const std::string& value) {
  return std::string("\x8c") + static_cast<char>(name.size()) + name + "\x94" + value;
}

std::string Long1(uint64_t value, size_t width) {
  std::string out = "\x8a";
  out += static_cast<char>(width);
  for (size_t i = 0; i < width; ++i) {
    out += static_cast<char>(i < 8 ? value >> 8 * i & 0xFFU : 0U);
  }
  return out;
}

std::string BinInt(uint32_t value) {
  return "J" + Long1(value, 4).substr(2);
}

TEST(FindCompileTime, ReadsAnInductorEntry) {
  const StoredCompileTime found =
      FindCompileTime("junk" + Attribute("_time_taken_ns", Long1(21'210'000'000, 5)) + "more junk");
  EXPECT_EQ(found.graph_ns, 21'210'000'000);
  EXPECT_EQ(found.autograd_ns, 0);
  EXPECT_DOUBLE_EQ(found.Seconds(), 21.21);
}

TEST(FindCompileTime, PrefersAnAutogradEntry) {
  const StoredCompileTime found =
      FindCompileTime(Attribute("_time_taken_ns", Long1(21'210'000'000, 5)) +
                      Attribute("forward_time_taken_ns", Long1(22'000'000'000, 5)) +
                      Attribute("backward_time_taken_ns", std::string("K\x00", 2)));
  EXPECT_EQ(found.autograd_ns, 22'000'000'000);
  EXPECT_DOUBLE_EQ(found.Seconds(), 22.0);
}

TEST(FindCompileTime, DecodesEveryIntegerOpcode) {
  EXPECT_EQ(FindCompileTime(Attribute("_time_taken_ns", "K\x07")).graph_ns, 7);
  EXPECT_EQ(FindCompileTime(Attribute("_time_taken_ns", "M\x07\x01")).graph_ns, 263);
  EXPECT_EQ(FindCompileTime(Attribute("_time_taken_ns", BinInt(96'000'000))).graph_ns, 96'000'000);
  EXPECT_EQ(FindCompileTime(Attribute("_time_taken_ns", Long1(609'000'000, 8))).graph_ns,
            609'000'000);
}

TEST(FindCompileTime, SumsAllEntries) {
  const std::string one = Attribute("_time_taken_ns", Long1(3'430'000'000, 5));
  EXPECT_EQ(FindCompileTime(one + one + "x" + one).graph_ns, 3 * int64_t{3'430'000'000});
  StoredCompileTime sum = FindCompileTime(one);
  sum += FindCompileTime(Attribute("forward_time_taken_ns", Long1(5, 1)));
  EXPECT_EQ(sum.graph_ns, 3'430'000'000);
  EXPECT_EQ(sum.autograd_ns, 5);
}

TEST(FindCompileTime, SaturatesInsteadOfOverflowing) {
  const std::string day = Attribute("_time_taken_ns", Long1(86'400'000'000'000, 6));
  std::string bytes;
  for (int i = 0; i < 110'000; ++i) {
    bytes += day;
  }
  StoredCompileTime sum = FindCompileTime(bytes);
  EXPECT_EQ(sum.graph_ns, INT64_MAX);
  sum += sum;
  EXPECT_EQ(sum.graph_ns, INT64_MAX);
}

TEST(FindCompileTime, IgnoresMalformedAndImplausibleTimes) {
  for (const std::string& value :
       {std::string(), std::string("K"), std::string("N"), std::string("J\x01\x02"), Long1(0, 0),
        Long1(~uint64_t{0}, 8), Long1(uint64_t{1} << 62U, 8), Long1(1, 9),
        std::string("\x8a\x05\x01")}) {
    EXPECT_EQ(FindCompileTime(Attribute("_time_taken_ns", value)).graph_ns, 0);
  }
  EXPECT_EQ(FindCompileTime("").Seconds(), 0);
}

TEST(FindCompileTime, RequiresTheExactAttributeName) {
  EXPECT_EQ(FindCompileTime(Attribute("x_time_taken_ns", "K\x07")).graph_ns, 0);
}

TEST(StoresCompileTime, SelectsIndexEntries) {
  const CacheTable& table = CacheTable::AllPresets();
  EXPECT_TRUE(StoresCompileTime(table.Classify("inductor/fxgraph/a/b/c")));
  EXPECT_TRUE(StoresCompileTime(table.Classify("inductor/aotautograd/a/c")));
  EXPECT_TRUE(StoresCompileTime(
      table.Classify("vllm/torch_compile_cache/torch_aot_compile/9f/rank_0_0/model")));
  EXPECT_FALSE(StoresCompileTime(table.Classify("inductor/ab/c.main.so")));
  EXPECT_FALSE(StoresCompileTime(table.Classify("triton/A/__grp__k.json")));
  EXPECT_FALSE(StoresCompileTime(table.Classify("inductor/fxgraph/a/b/.1.tmp")));
}

}  // namespace
}  // namespace cachewarm::caches
