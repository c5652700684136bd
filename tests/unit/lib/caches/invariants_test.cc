// SPDX-License-Identifier: Apache-2.0
// Properties of the classification of any path: pods choose the names.
#include <gmock/gmock.h>

#include <random>

#include "fmt/format.h"
#include "lib/caches/cache_table.h"
#include "lib/caches/file_check.h"

namespace cachewarm::caches {
namespace {

// Random paths of components that the table knows, so that some match a rule and some do not.
class Paths {
 public:
  explicit Paths(uint32_t seed) : random_(seed) {}

  std::string Next() {
    const size_t parts = 1 + random_() % 7;
    std::string path;
    for (size_t i = 0; i < parts; ++i) {
      path += (i == 0 ? "" : "/") + components_[random_() % components_.size()];
    }
    return path;
  }

 private:
  static std::vector<std::string> Components() {
    std::vector<std::string> components = CacheTable::AllPresets().Directories();
    for (const char* name : {".cache",
                             "fxgraph",
                             "aotautograd",
                             "locks",
                             "tmp",
                             "tmp.1",
                             ".staging",
                             "cache",
                             "kernels",
                             "torch_compile_cache",
                             "torch_aot_compile",
                             "rank_0_0",
                             "inductor_cache",
                             "triton_cache",
                             "cached_ops",
                             "generated",
                             "ab",
                             "0",
                             "model",
                             "index",
                             "kernel.cubin",
                             "c1.main.so",
                             "c1.so",
                             "c1.so.load_ok",
                             "c1.py",
                             "c1.cpp",
                             "__grp__k.json",
                             "k.json",
                             "a-cache",
                             "x.lock",
                             "x.log",
                             ".1.2.tmp",
                             "lock",
                             "cache_key_factors.json",
                             "artifact_1",
                             "vllm_compile_cache.py",
                             "..",
                             ".",
                             "",
                             "a\xff",
                             "größe",
                             "deep_gemm"}) {
      components.emplace_back(name);
    }
    return components;
  }

  std::mt19937 random_;
  const std::vector<std::string> components_ = Components();
};

TEST(Invariants, HoldForAnyPath) {
  const CacheTable& table = CacheTable::AllPresets();
  Paths paths(1);
  int carried = 0;
  for (int i = 0; i < 30'000; ++i) {
    const std::string path = paths.Next();
    const Placement p = table.Classify(path);
    if (!p.carried()) {
      continue;
    }
    ++carried;
    SCOPED_TRACE(path);
    ASSERT_FALSE(p.cache.empty());
    // Shared inodes and writing in place exclude each other.
    ASSERT_FALSE(p.writable && p.hard_link);
    // A file that an engine rewrites may be incomplete.
    ASSERT_TRUE(!p.writable || p.in_place);
    // A unit is a leading part of its file's path, or the path up to a dot.
    ASSERT_TRUE(p.unit.empty() || path.starts_with(p.unit + "/") || path.starts_with(p.unit + "."))
        << p.unit;
    for (const char* never : {"lock", "locks", "tmp", "..", ".", ".staging"}) {
      ASSERT_FALSE(("/" + path + "/").find(fmt::format("/{}/", never)) != std::string::npos);
    }
    ASSERT_FALSE(path.ends_with(".log") || path.ends_with(".lock") || path.ends_with(".tmp"));
    ASSERT_FALSE(path.ends_with("cache_key_factors.json"));
  }
  EXPECT_GT(carried, 300) << "too few paths match a rule";
}

TEST(Invariants, MarkHostMachineCodeAsNative) {
  // Only Triton's modules run on every processor of an architecture.
  Paths paths(2);
  for (int i = 0; i < 30'000; ++i) {
    const std::string path = paths.Next();
    const Placement p = CacheTable::AllPresets().Classify(path);
    if (p.carried() && (path.ends_with(".so") || path.ends_with(".o")) && p.cache != "triton" &&
        p.cache != "cute-dsl" && p.cache != "cuda" && p.cache != "vllm" && p.cache != "sglang" &&
        path.find("/generated/") == std::string::npos &&
        path.find("/autotuner/") == std::string::npos &&
        path.find("/cache/") == std::string::npos) {
      ASSERT_TRUE(p.native) << path;
    }
  }
}

TEST(Invariants, ClassifyEqualPathsAlike) {
  Paths paths(3);
  for (int i = 0; i < 2000; ++i) {
    const std::string path = paths.Next();
    const Placement first = CacheTable::AllPresets().Classify(path);
    const Placement second = CacheTable::AllPresets().Classify(path);
    ASSERT_EQ(first.skip, second.skip);
    ASSERT_EQ(first.unit, second.unit);
    ASSERT_EQ(first.role, second.role);
  }
}

TEST(Invariants, SelectWholeUnitsOfPresentFiles) {
  const CacheTable& table = CacheTable::AllPresets();
  Paths paths(4);
  for (int run = 0; run < 50; ++run) {
    std::set<std::string> unique;
    std::set<std::string, std::less<>> used;
    for (int i = 0; i < 200; ++i) {
      const std::string path = paths.Next();
      unique.insert(path);
      if (i % 7 == 0) {
        used.insert(path);
      }
    }
    const std::vector<std::string> present(unique.begin(), unique.end());
    const std::vector<std::string> selected = table.SelectUsed(present, used);
    const std::set<std::string> kept(selected.begin(), selected.end());
    std::set<std::string> units;
    for (const std::string& path : selected) {
      ASSERT_TRUE(unique.contains(path));
      ASSERT_TRUE(table.Classify(path).carried());
      units.insert(table.Classify(path).unit);
    }
    for (const std::string& path : present) {
      const Placement p = table.Classify(path);
      if (p.carried() && (used.contains(path) || (!p.unit.empty() && units.contains(p.unit)))) {
        ASSERT_TRUE(kept.contains(path)) << path;
      }
    }
    ASSERT_EQ(table.SelectUsed(selected, used), selected) << "selecting again changes nothing";
  }
}

TEST(Invariants, ReportOnlyDataLossForRandomBytes) {
  std::mt19937 random(5);
  const Placement placement = CacheTable::AllPresets().Classify("inductor/ab/c1.main.so");
  for (int i = 0; i < 3000; ++i) {
    std::string bytes =
        "\x7f"
        "ELF\2\1";
    const size_t size = random() % 300;
    while (bytes.size() < size) {
      bytes += static_cast<char>(random() % 4 == 0 ? random() : 0);
    }
    bytes.resize(size);
    const absl::Status status =
        CheckWhole(placement, "x.so", bytes.size(),
                   [&bytes](uint64_t offset, size_t length) -> absl::StatusOr<std::string> {
                     return offset >= bytes.size() ? "" : bytes.substr(offset, length);
                   });
    ASSERT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
    FindCompileTime(bytes);
    CubinArchitecture(bytes);
    HsacoArchitecture(bytes);
    PtxArchitecture(bytes);
  }
}

}  // namespace
}  // namespace cachewarm::caches
