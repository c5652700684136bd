// SPDX-License-Identifier: Apache-2.0
// Checks that every row of the table of cache kinds is complete and that rows do not clash.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

#include "lib/caches/cache_table.h"
#include "lib/caches/describe.h"
#include "lib/caches/kind.h"
#include "tests/fakes/source_dir.h"

namespace cachewarm::caches {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

bool Matches(std::string_view text, const char* pattern) {
  return std::regex_match(std::string(text), std::regex(pattern));
}

// The one explicit list of presets. A kind that is dropped or renamed breaks every CacheWarmup that
// names it; a new kind needs no entry here.
TEST(KindTable, KeepsThePresetsThatUsersMayName) {
  EXPECT_THAT(
      PresetNames(),
      IsSupersetOf(
          {"torchinductor",    "triton", "vllm",  "sglang", "flashinfer", "deepgemm", "tilelang",
           "torch-extensions", "cuda",   "jax",   "cupy",   "cute-dsl",   "tvm-ffi",  "numba",
           "flash-attention",  "helion", "aiter", "miopen", "neuron",     "gaudi",    "tensorrt"}));
}

TEST(KindTable, HasOneRowPerFile) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(fakes::SourceDir()) / "lib/caches/kinds")) {
    if (entry.path().extension() == ".cc") {
      files.push_back(entry.path().stem());
    }
  }
  std::vector<std::string> rows = PresetNames();
  for (std::string& name : rows) {
    std::replace(name.begin(), name.end(), '-', '_');
  }
  EXPECT_THAT(rows, UnorderedElementsAreArray(files));
}

TEST(KindTable, NamesAndDirectoriesAreUniqueAndValid) {
  std::set<std::string_view> names;
  std::set<std::string_view> directories;
  for (const CacheKind& kind : AllKinds()) {
    SCOPED_TRACE(kind.name);
    // As in crds/cachewarmups.yaml.
    EXPECT_TRUE(Matches(kind.name, "[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?"));
    EXPECT_TRUE(Matches(kind.path, "[a-z0-9_]+"));
    EXPECT_TRUE(names.insert(kind.name).second);
    EXPECT_TRUE(directories.insert(kind.path).second);
    EXPECT_EQ(FindKind(kind.name), &kind);
    EXPECT_TRUE(CheckPresetName(kind.name).ok());
  }
}

TEST(KindTable, EveryKindSetsVariablesOfItsOwn) {
  std::set<std::string_view> variables;
  for (const CacheKind& kind : AllKinds()) {
    SCOPED_TRACE(kind.name);
    EXPECT_TRUE(std::any_of(kind.env.begin(), kind.env.end(),
                            [](const EnvRow& row) { return ValueOf(row, "/m") != row.value; }));
    for (const EnvRow& row : kind.env) {
      EXPECT_TRUE(Matches(row.name, "[A-Z][A-Z0-9_]*")) << row.name;
      EXPECT_FALSE(row.value.empty()) << row.name;
      EXPECT_TRUE(variables.insert(row.name).second) << row.name;
    }
    for (const EnvRow& row : kind.strict) {
      EXPECT_TRUE(Matches(row.name, "[A-Z][A-Z0-9_]*")) << row.name;
      EXPECT_TRUE(Matches(row.value, "[A-Za-z0-9]+")) << row.name << " has no directory";
      EXPECT_TRUE(variables.insert(row.name).second) << row.name;
    }
  }
}

TEST(KindTable, EveryKindAllowsFiles) {
  for (const CacheKind& kind : AllKinds()) {
    SCOPED_TRACE(kind.name);
    EXPECT_TRUE(std::any_of(kind.files.begin(), kind.files.end(),
                            [](const FileRow& row) { return row.skip == Skip::kNo; }));
    for (const FileRow& row : kind.files) {
      EXPECT_FALSE(row.glob.empty() || row.glob.starts_with('/') || row.glob.ends_with('/'))
          << row.glob;
      EXPECT_FALSE(row.writable && !row.in_place) << row.glob;
    }
  }
}

// A variable that turns a cache on, or hangs an engine, must not be set in every pod.
TEST(KindTable, SelectsTheseKindsOnlyByName) {
  std::vector<std::string> opt_in;
  for (const CacheKind& kind : AllKinds()) {
    if (!kind.opt_in.empty()) {
      opt_in.emplace_back(kind.name);
    }
  }
  EXPECT_THAT(opt_in, UnorderedElementsAre("aiter", "miopen", "neuron", "gaudi", "tensorrt",
                                           "torchinductor-redis"));
}

TEST(KindTable, PutsTheDirectoryInPlaceOfALeadingAt) {
  EXPECT_EQ(ValueOf({"A"}, "/m/kind"), "/m/kind");
  EXPECT_EQ(ValueOf({"A", "@/jit"}, "/m/kind"), "/m/kind/jit");
  EXPECT_EQ(ValueOf({"A", "@,false,16384"}, "/m/kind"), "/m/kind,false,16384");
  EXPECT_EQ(ValueOf({"A", "unix://@/a.sock"}, "/m/kind"), "unix:///m/kind/a.sock");
  EXPECT_EQ(ValueOf({"A", "unix:///a@b"}, "/m/kind"), "unix:///a@b");
  EXPECT_EQ(ValueOf({"A", "1"}, "/m/kind"), "1");
  EXPECT_EQ(ValueOf({"A", "a@b"}, "/m/kind"), "a@b");
}

TEST(KindTable, EveryKindStatesItsFactsInSentences) {
  for (const CacheKind& kind : AllKinds()) {
    SCOPED_TRACE(kind.name);
    EXPECT_FALSE(kind.facts.engine.empty());
    for (const std::string_view sentence :
         {kind.facts.proof, kind.facts.absolute_paths, kind.facts.hit, kind.facts.miss}) {
      EXPECT_TRUE(sentence.ends_with('.')) << sentence;
    }
    EXPECT_TRUE(kind.opt_in.empty() || kind.opt_in.ends_with('.')) << kind.opt_in;
  }
}

TEST(KindTable, DescribesEveryKindAsItsRowIs) {
  const std::vector<KindDescription> kinds = DescribeKinds();
  ASSERT_EQ(kinds.size(), AllKinds().size());
  const auto find = [&kinds](std::string_view name) {
    return *std::find_if(kinds.begin(), kinds.end(),
                         [name](const KindDescription& kind) { return kind.name == name; });
  };
  const KindDescription vllm = find("vllm");
  EXPECT_EQ(vllm.directory, "vllm");
  EXPECT_THAT(vllm.variables, ElementsAre("VLLM_CACHE_ROOT=@"));
  EXPECT_EQ(vllm.opt_in, "");
  EXPECT_THAT(vllm.captured, Contains("deep_gemm/: deepgemm"));
  EXPECT_THAT(vllm.captured, Contains("modelinfos/*.json"));
  EXPECT_THAT(vllm.skipped, Contains("startup_plan/**: measured during a cold start"));
  EXPECT_THAT(vllm.links, StartsWith("All files except torch_compile_cache/**/vllm_compile_cache"));
  EXPECT_EQ(find("triton").links, "All files.");
  EXPECT_EQ(find("cuda").links, "None: every generation has its own copy.");
  EXPECT_THAT(find("flashinfer").captured, Contains(".cache/flashinfer/cubins/**"));
  EXPECT_NE(find("aiter").opt_in, "");
  EXPECT_THAT(find("triton").versions, ElementsAre("triton in triton_version of */*.json"));
  EXPECT_THAT(find("numba").versions, ElementsAre("numba in the first object of **/*.nbi"));
  EXPECT_THAT(vllm.versions,
              Contains("flashinfer in component 2 of flashinfer_autotune_cache/*/**"));
  EXPECT_THAT(find("flashinfer").versions,
              Contains("flashinfer in component 3 of .cache/flashinfer/*/*/cached_ops/**"));
}

TEST(KindTable, EveryNestedKindExists) {
  for (const CacheKind& kind : AllKinds()) {
    for (const NestedRow& nested : kind.nested) {
      EXPECT_NE(FindKind(nested.kind), nullptr) << kind.name << " nests " << nested.kind;
      EXPECT_NE(nested.kind, kind.name);
      EXPECT_FALSE(nested.directory.empty()) << kind.name;
    }
  }
}

TEST(CheckPresetName, ListsThePresets) {
  const absl::Status status = CheckPresetName("tritton");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  const std::string message(status.message());
  EXPECT_TRUE(message.starts_with("\"tritton\" is not a cache kind that cachewarm knows (known: "));
  for (const std::string& name : PresetNames()) {
    EXPECT_NE(message.find(name), std::string::npos) << name;
  }
  EXPECT_FALSE(CheckPresetName("").ok());
}

}  // namespace
}  // namespace cachewarm::caches
