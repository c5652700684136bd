// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/selection.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/caches/entry_scan.h"
#include "lib/capture/tree_listing.h"
#include "tests/fakes/cache_files.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::capture {
namespace {

class SelectionTest : public ::testing::Test {
 protected:
  SelectionTest() {
    scratch_.Write(kIndexFile, "index");
    scratch_.Write(kAutogradFile, "autograd");
    scratch_.Write(kObjectFile, SharedObject("code"));
    scratch_.Write(kSourceFile, "int main() {}");
    scratch_.Write(kOutputFile, "def call(): pass");
    scratch_.Write(kLockFile, "");
    scratch_.Write("inductor/cache_key_factors.json", "{\"HF_TOKEN\": \"secret\"}");
    scratch_.Write("elsewhere/file", "x");
  }

  TreeListing List() {
    tree_ = *fs::Dir::Open(scratch_.path());
    return *ListTree(*tree_, caches::CacheTable::AllPresets());
  }

  absl::StatusOr<Selection> Select() {
    TreeListing listing = List();
    return SelectFiles(
        std::move(listing.files),
        {.tree = *tree_, .on_opening = [this](const std::string& path) { opened_.insert(path); }});
  }

  static std::set<std::string> Names(const std::vector<TreeFile>& files) {
    std::set<std::string> names;
    for (const TreeFile& file : files) {
      names.insert(file.path);
    }
    return names;
  }

  TempDir scratch_;
  std::optional<fs::Dir> tree_;
  std::multiset<std::string> opened_;
};

TEST_F(SelectionTest, ListsOnlyAllowedFiles) {
  std::filesystem::create_symlink("/etc/passwd", scratch_ / "inductor/cd/cevil.py");
  EXPECT_EQ(Names(List().files), (std::set<std::string>{kIndexFile, kAutogradFile, kObjectFile,
                                                        kSourceFile, kOutputFile}));
}

TEST_F(SelectionTest, CountsSkippedFilesByReason) {
  std::filesystem::create_symlink("/etc/passwd", scratch_ / "inductor/cd/cevil.py");
  const TreeListing listing = List();
  EXPECT_EQ(listing.left_behind.at("not a regular file"), 1);
  int64_t files = 0;
  for (const auto& [reason, count] : listing.left_behind) {
    files += count;
  }
  EXPECT_EQ(files, 4) << "link, lock, private file, unknown folder";
}

TEST_F(SelectionTest, SelectsCompleteFiles) {
  const absl::StatusOr<Selection> selection = Select();
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_EQ(selection->files.size(), 5U);
  EXPECT_TRUE(selection->native);
  EXPECT_TRUE(selection->truncated.empty());
}

TEST_F(SelectionTest, EmptyAutotuneResultLeavesOutItsSet) {
  const std::string set = "sglang/flashinfer/autotune/0.7.0/90a/";
  scratch_.Write(set + "rank0.json", "{}");
  scratch_.Write(set + "rank1.json", "");
  scratch_.Write("inductor/ab/00.best_config", "{}");
  const absl::StatusOr<Selection> selection = Select();
  ASSERT_TRUE(selection.ok()) << selection.status();
  const std::set<std::string> names = Names(selection->files);
  EXPECT_FALSE(names.contains(set + "rank0.json"));
  EXPECT_TRUE(names.contains("inductor/ab/00.best_config"));
  EXPECT_EQ(selection->truncated,
            std::vector<std::string>{set + "rank1.json: empty autotune result"});
}

TEST_F(SelectionTest, SelectionWithoutHostCodeIsNotNative) {
  std::filesystem::remove(scratch_ / kObjectFile);
  std::filesystem::remove(scratch_ / kSourceFile);
  const absl::StatusOr<Selection> selection = Select();
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_FALSE(selection->native);
}

TEST_F(SelectionTest, DropsTruncatedObjectWithItsUnit) {
  struct Case {
    std::string what;
    std::string bytes;
  };
  const std::string whole = SharedObject(std::string(4000, 'x'));
  for (const Case& each : {Case{"empty", ""}, Case{"cut", whole.substr(0, 2000)},
                           Case{"cut in its header", whole.substr(0, 20)},
                           Case{"cut at its last byte", whole.substr(0, whole.size() - 1)}}) {
    scratch_.Write(kObjectFile, each.bytes);
    const absl::StatusOr<Selection> selection = Select();
    ASSERT_TRUE(selection.ok()) << each.what << selection.status();
    const std::set<std::string> names = Names(selection->files);
    EXPECT_FALSE(names.contains(kObjectFile)) << each.what;
    EXPECT_FALSE(names.contains(kSourceFile)) << each.what << ": same unit";
    EXPECT_TRUE(names.contains(kIndexFile)) << each.what;
    ASSERT_EQ(selection->truncated.size(), 1U) << each.what;
    EXPECT_NE(selection->truncated[0].find(kObjectFile), std::string::npos);
    EXPECT_TRUE(selection->native) << each.what << ": the entries beside it call its code";
  }
}

TEST_F(SelectionTest, ReadsStoredCompileTime) {
  // SHORT_BINUNICODE 14 "_time_taken_ns" MEMOIZE LONG1 5 bytes: 21.21 s.
  const int64_t taken = 21'210'000'000;
  std::string entry = "\x80\x04\x8c\x0e_time_taken_ns\x94\x8a\x05";
  for (int i = 0; i < 5; ++i) {
    entry += static_cast<char>(taken >> (8 * i));
  }
  scratch_.Write(kIndexFile, entry + ".");
  const absl::StatusOr<Selection> selection = Select();
  ASSERT_TRUE(selection.ok());
  EXPECT_NEAR(selection->compile_time.Seconds(), 21.21, 1e-9);
}

TEST_F(SelectionTest, CountsCompileTimeAtPieceBoundaryOnce) {
  const std::string time =
      "\x8c\x16"
      "backward_time_taken_ns\x94\x8a\x08" +
      std::string("\x00\xca\x9a\x3b\0\0\0\0", 8);  // a second
  constexpr size_t kPiece = 256U << 10U;
  for (size_t before = 0; before <= caches::kScanOverlapBytes + 2 * time.size();
       before += before == 2 * time.size() ? caches::kScanOverlapBytes - 4 * time.size() : 1) {
    std::string entry(kPiece + time.size() - before, 'x');
    entry += time;
    entry.resize(2 * kPiece - before, 'x');
    scratch_.Write(kAutogradFile, entry + time);
    const absl::StatusOr<Selection> selection = Select();
    ASSERT_TRUE(selection.ok());
    EXPECT_EQ(selection->compile_time.autograd_ns, 2'000'000'000) << before;
  }
}

TEST_F(SelectionTest, EntryWithACppKernelIsNative) {
  std::filesystem::remove(scratch_ / kObjectFile);
  std::filesystem::remove(scratch_ / kSourceFile);
  ASSERT_FALSE(Select()->native);
  const std::string kernel = "async_compile.cpp_pybinding(";
  constexpr size_t kPiece = 256U << 10U;
  for (const std::string& path : {kIndexFile, kAutogradFile, kOutputFile}) {
    for (const size_t before : {size_t{0}, kPiece - kernel.size() / 2, kPiece - 1, 2 * kPiece}) {
      scratch_.Write(path, std::string(before, 'x') + kernel);
      EXPECT_TRUE(Select()->native) << path << " " << before;
    }
    scratch_.Write(path, "async_compile.triton(");
    EXPECT_FALSE(Select()->native) << path;
  }
}

TEST_F(SelectionTest, EntryThatIsTooLargeToScanIsNative) {
  std::filesystem::remove(scratch_ / kObjectFile);
  std::filesystem::remove(scratch_ / kSourceFile);
  std::string text(64U << 20U, 'x');  // a sparse file would be left out
  scratch_.Write(kIndexFile, text);
  EXPECT_FALSE(Select()->native);
  scratch_.Write(kIndexFile, text += 'x');
  EXPECT_TRUE(Select()->native);
}

TEST_F(SelectionTest, KernelOfTritonsCpuBackendIsNative) {
  std::filesystem::remove(scratch_ / kObjectFile);
  std::filesystem::remove(scratch_ / kSourceFile);
  scratch_.Write("triton/KEY/k.so", SharedObject("code"));
  scratch_.Write("triton/KEY/k.json", R"({"target": {"backend": "cuda", "arch": 90}})");
  EXPECT_FALSE(Select()->native);
  scratch_.Write("triton/KEY/k.json", R"({"target": {"backend": "cpu", "arch": 0}})");
  EXPECT_TRUE(Select()->native);
}

TEST_F(SelectionTest, NamesTheEnginesOfItsFiles) {
  EXPECT_TRUE(Select()->engines.empty());
  scratch_.Write("triton/A/k.json", R"({"triton_version": "3.7.1"})");
  scratch_.Write("triton/B/k.json", R"({"triton_version": "3.7.1"})");
  scratch_.Write("tilelang/0.1.6/linux-x86_64/kernels/ab/params.pkl", "x");
  using Engines = std::map<std::string, std::string>;
  EXPECT_EQ(Select()->engines, (Engines{{"triton", "3.7.1"}, {"tilelang", "0.1.6"}}));
  for (const char* older : {"3.5.0", "3.4.0", "3.3.0", "3.2.0"}) {
    scratch_.Write(std::string("triton/") + older + "/k.json",
                   std::string(R"({"triton_version": ")") + older + "\"}");
  }
  EXPECT_EQ(Select()->engines.at("triton"), "3.3.0, 3.4.0, 3.5.0, 3.7.1") << "at most four";
}

TEST_F(SelectionTest, RecordsTheTargetsOfPtx) {
  EXPECT_TRUE(Select()->gpu_architectures.empty());
  scratch_.Write("triton/ONE/k.ptx", "//\n.version 8.4\n.target sm_90a\n.address_size 64\n");
  scratch_.Write("triton/TWO/k.ptx", "//\n.version 8.4\n.target sm_80\n.address_size 64\n");
  scratch_.Write("triton/TWO/k.ttir", "//\n.target sm_70\n");
  EXPECT_EQ(Select()->gpu_architectures, (std::vector<std::string>{"compute_80", "compute_90a"}));
}

TEST_F(SelectionTest, DroppedFilesStateNoFacts) {
  const std::string second =  // stored by an index entry
      "\x80\x04\x8c\x0e_time_taken_ns\x94\x8a\x04" + std::string("\x00\xca\x9a\x3b", 4) + ".";
  scratch_.Write(kIndexFile, second);
  scratch_.Write("inductor/fxgraph/ab/fother/entry", second);
  scratch_.Write("triton/ONE/k.ptx", "//\n.version 8.4\n.target sm_90a\n.address_size 64\n");
  scratch_.Write("triton/ONE/k.json", R"({"triton_version": "3.7.1"})");
  absl::StatusOr<Selection> selection = Select();
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_NEAR(selection->compile_time.Seconds(), 2, 1e-9);
  EXPECT_EQ(selection->gpu_architectures, std::vector<std::string>{"compute_90a"});
  EXPECT_EQ(selection->engines.size(), 1U);
  // Each unit gets a truncated file.
  scratch_.Write("inductor/fxgraph/ab/fother/second", "");
  scratch_.Write("triton/ONE/k.cubin", "");
  selection = Select();
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_EQ(selection->truncated.size(), 2U);
  EXPECT_NEAR(selection->compile_time.Seconds(), 1, 1e-9);
  EXPECT_TRUE(selection->gpu_architectures.empty());
  EXPECT_TRUE(selection->engines.empty());
}

TEST_F(SelectionTest, ReportsEveryRead) {
  ASSERT_TRUE(Select().ok());
  EXPECT_EQ(opened_, (std::multiset<std::string>{kIndexFile, kAutogradFile, kObjectFile,
                                                 kSourceFile, kOutputFile}));
}

TEST_F(SelectionTest, AbortsIfAFileIsRemoved) {
  TreeListing listing = List();
  std::filesystem::remove(scratch_ / kOutputFile);
  EXPECT_TRUE(absl::IsAborted(SelectFiles(std::move(listing.files), {.tree = *tree_}).status()));
}

TEST_F(SelectionTest, AbortsIfAFileChanges) {
  TreeListing listing = List();
  scratch_.Write(kOutputFile, "def call(): raise");
  EXPECT_TRUE(absl::IsAborted(SelectFiles(std::move(listing.files), {.tree = *tree_}).status()));
}

}  // namespace
}  // namespace cachewarm::capture
