// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/entry_scan.h"

#include <gmock/gmock.h>

#include <random>

#include "lib/caches/cache_table.h"

namespace cachewarm::caches {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Placement PlaceOf(std::string_view path) {
  return CacheTable::AllPresets().Classify(path);
}

std::vector<EngineVersion> InPath(std::string_view path) {
  return VersionsInPath(PlaceOf(path), path);
}

std::vector<EngineVersion> InText(std::string_view path, std::string_view bytes,
                                  bool is_first = true) {
  return VersionsInText(PlaceOf(path), path, bytes, is_first);
}

constexpr char kMetadata[] = "triton/KEY/k.json";
constexpr char kModel[] = "vllm/torch_compile_cache/torch_aot_compile/9f/rank_0_0/model";
constexpr char kIndex[] = "numba/pkg_ab/f.py311.nbi";

// As torch 2.13 pickles its SystemInfo.
const std::string kSystemInfo =
    "\x80\x04\x95\x8c\x0epython_version\x94\x8c\x06"
    "3.11.2\x94\x8c\rtorch_version\x94\x8c\x13torch.torch_version\x94\x8c\x0cTorchVersion\x94\x93"
    "\x94\x8c\x0c"
    "2.13.0+cu130\x94\x85\x94\x81\x94\x8c\x0ftoolkit_version\x94N";

TEST(HostCode, IsFoundInKernelsOfInductorAndOfTritonsCpuBackend) {
  for (const char* text :
       {"cpp_fused_0 = async_compile.cpp_pybinding(['float*'], r'''",
        "#include <ATen/x.h>\nat::vec::",
        "#include <torch/csrc/inductor/cpp_prefix.h>\nextern \"C\" void kernel(float*",
        R"({"hash": "00", "target": {"backend": "cpu", "arch": 0, "warp_size": 0}})"}) {
    EXPECT_TRUE(ContainsHostCode(text)) << text;
    EXPECT_TRUE(ContainsHostCode("x" + std::string(text) + "x")) << text;
  }
}

TEST(HostCode, IsNotFoundInGpuKernels) {
  for (const char* text :
       {"", "c", "triton_poi_fused_0 = async_compile.triton('triton_poi_fused_0', '''",
        "from torch._inductor.async_compile import AsyncCompile",
        R"({"hash": "00", "target": {"backend": "cuda", "arch": 90, "warp_size": 32}})",
        "empty_strided_cpu = torch._C._dynamo.guards._empty_strided_cpu"}) {
    EXPECT_FALSE(ContainsHostCode(text)) << text;
  }
}

TEST(HostCode, MayBeInTheseFiles) {
  for (const char* path :
       {"inductor/fxgraph/rm/frm2azru/0a1b", "inductor/aotautograd/ax34ejms/0a1b",
        "inductor/dynamo/0a1b2c3d/entry", "inductor/ab/cab1.py", kModel, kMetadata,
        "vllm/torch_compile_cache/d4/rank_0_0/backbone/artifact_1",
        "vllm/torch_compile_cache/torch_aot_compile/9f/inductor_cache/fxgraph/ab/fab/1",
        "sglang/inductor/fxgraph/ab/fab/1"}) {
    EXPECT_TRUE(MayHoldHostCode(PlaceOf(path))) << path;
  }
  for (const char* path : {"triton/KEY/k.cubin", "triton/KEY/__grp__k.json", "cuda/a/b",
                           "inductor/locks/cab.lock", "elsewhere/cab1.py", ""}) {
    EXPECT_FALSE(MayHoldHostCode(PlaceOf(path))) << path;
  }
}

TEST(HostCode, SourceOfAKernelIsNative) {
  EXPECT_TRUE(PlaceOf("inductor/ab/cab1.main.cpp").native);
  EXPECT_FALSE(PlaceOf("inductor/ab/cab1.py").native);
}

TEST(VersionsInPath, AreComponentsThatAreVersions) {
  const std::pair<const char*, EngineVersion> named[] = {
      {"flashinfer/.cache/flashinfer/0.7.0/90a/cached_ops/moe/moe.so", {"flashinfer", "0.7.0"}},
      {"flashinfer/.cache/flashinfer/0.6.11.post2/90a/generated/moe/a.cu",
       {"flashinfer", "0.6.11.post2"}},
      {"sglang/.cache/flashinfer/0.7.0/90a/cached_ops/moe/moe.so", {"flashinfer", "0.7.0"}},
      {"sglang/flashinfer/autotune/0.6.13/90a/ab/rank0.json", {"flashinfer", "0.6.13"}},
      {"vllm/flashinfer_autotune_cache/0.7.0/103a/c0/autotune_configs.json",
       {"flashinfer", "0.7.0"}},
      {"tilelang/0.1.6/linux-x86_64/kernels/ab/params.pkl", {"tilelang", "0.1.6"}},
      {"neuron/neuronxcc-2.21.33363.0+82129205/MODULE_1+2/model.neff",
       {"neuronxcc", "2.21.33363.0+82129205"}}};
  for (const auto& [path, version] : named) {
    EXPECT_THAT(InPath(path), ElementsAre(version)) << path;
  }
  const std::string long_one(65, '1');
  for (const std::string& path :
       {std::string("flashinfer/.cache/flashinfer/latest/90a/cached_ops/moe/moe.so"),
        std::string("flashinfer/.cache/flashinfer/0;rm -r/90a/cached_ops/moe/moe.so"),
        "tilelang/" + long_one + ".0/linux/kernels/ab/params.pkl",
        std::string("tilelang/17/linux/kernels/ab/params.pkl"),
        std::string("flashinfer/.cache/flashinfer/autotune/v2/00/manifest.json"),
        std::string("inductor/ab/cab1.py"), std::string("elsewhere/0.1.6/x"), std::string()}) {
    EXPECT_THAT(InPath(path), IsEmpty()) << path;
  }
}

TEST(VersionsInText, OfTritonAreInItsMetadata) {
  EXPECT_THAT(InText(kMetadata, R"({"hash": "00", "triton_version": "3.7.1", "x": 1})"),
              ElementsAre(EngineVersion{"triton", "3.7.1"}));
  EXPECT_THAT(InText("inductor/triton/0/KEY/k.json", "{\"triton_version\":\n\t\"3.7.1\"}"),
              ElementsAre(EngineVersion{"triton", "3.7.1"}));
  for (const char* text :
       {"", "{}", R"({"triton_version": 3.7})", R"({"triton_version": "3.7.1)",
        R"({"triton_version": "x"})", R"({"triton_version": ""})", R"({"triton_version")",
        "{\"triton_version\": \"3.7.1\\u0000\"}", R"({"triton_versions": "3.7.1"})"}) {
    EXPECT_THAT(InText(kMetadata, text), IsEmpty()) << text;
  }
  EXPECT_THAT(InText("triton/KEY/k.cubin", R"("triton_version": "3.7.1")"), IsEmpty());
}

TEST(VersionsInText, OfTorchIsInAnAheadOfTimeModelOfVllm) {
  EXPECT_THAT(InText(kModel, "before" + kSystemInfo + "after"),
              ElementsAre(EngineVersion{"torch", "2.13.0+cu130"}));
  EXPECT_THAT(InText(kModel, kSystemInfo, false),
              ElementsAre(EngineVersion{"torch", "2.13.0+cu130"}));
  EXPECT_THAT(InText("inductor/fxgraph/ab/fab/1", kSystemInfo), IsEmpty());
  for (size_t length = 0; length + 50 < kSystemInfo.size(); ++length) {
    EXPECT_THAT(InText(kModel, kSystemInfo.substr(0, length)), IsEmpty()) << length;
  }
}

TEST(VersionsInText, OfNumbaIsTheFirstObjectOfAnIndex) {
  const std::string index =
      std::string("\x80\x05\x95\x0a\0\0\0\0\0\0\0", 11) + "\x8c\x06" + "0.65.0\x94.";
  EXPECT_THAT(InText(kIndex, index), ElementsAre(EngineVersion{"numba", "0.65.0"}));
  EXPECT_THAT(InText(kIndex, index, false), IsEmpty());
  EXPECT_THAT(InText(kIndex, std::string(100, 'x') + index), IsEmpty());
  EXPECT_THAT(InText("numba/pkg_ab/f.py311.1.nbc", index), IsEmpty());
}

TEST(VersionsInText, MayBeInTheFilesOfTheRows) {
  for (const char* path : {kMetadata, kModel, kIndex}) {
    EXPECT_TRUE(MayHoldVersion(PlaceOf(path), path)) << path;
  }
  for (const char* path :
       {"triton/KEY/k.cubin", "inductor/ab/cab1.py", "elsewhere/k.json",
        "flashinfer/.cache/flashinfer/0.7.0/90a/cached_ops/moe/moe.so", "triton/KEY/k.json.lock"}) {
    EXPECT_FALSE(MayHoldVersion(PlaceOf(path), path)) << path;
  }
}

// Pods choose the bytes: no form of them may be read beyond its end, or reported as a version.
TEST(VersionsInText, OfRandomBytesAreVersions) {
  std::mt19937 random(7);
  const std::string parts[] = {"\x8c\rtorch_version\x94",
                               "\x8c",
                               "\"triton_version\"",
                               ": \"",
                               "1.2",
                               std::string(1, '\xff'),
                               std::string(1, '\0'),
                               "\""};
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes;
    for (int part = 0; part < 8; ++part) {
      bytes += parts[random() % std::size(parts)];
    }
    for (const char* path : {kMetadata, kModel, kIndex}) {
      for (const EngineVersion& found : InText(path, bytes)) {
        ASSERT_EQ(found.version.find_first_not_of("0123456789.torch_vesinp+-!"), std::string::npos);
        ASSERT_LE(found.version.size(), 64U);
      }
    }
  }
}

}  // namespace
}  // namespace cachewarm::caches
