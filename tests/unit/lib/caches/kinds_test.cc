// SPDX-License-Identifier: Apache-2.0
// Files of each engine, taken from real caches and from the engines' sources.
#include <gmock/gmock.h>

#include "lib/caches/cache_table.h"

namespace cachewarm::caches {
namespace {

// Flags of a row: n(ative), m(time), w(ritable), h(ard link), p(in place), a(lways),
// d(irectory is a write).
std::string FlagsOf(const Placement& p) {
  std::string flags;
  flags += p.native ? "n" : "";
  flags += p.keep_mtime ? "m" : "";
  flags += p.writable ? "w" : "";
  flags += p.hard_link ? "h" : "";
  flags += p.in_place ? "p" : "";
  flags += p.always ? "a" : "";
  flags += p.directory_is_write ? "d" : "";
  return flags;
}

struct Carried {
  const char* path;
  const char* cache;
  Role role;
  const char* flags;
  const char* unit;
};

void ExpectCarried(const Carried& c) {
  SCOPED_TRACE(c.path);
  const Placement placement = CacheTable::AllPresets().Classify(c.path);
  EXPECT_EQ(SkipName(placement.skip), "carried");
  EXPECT_EQ(placement.cache, c.cache);
  EXPECT_EQ(static_cast<int>(placement.role), static_cast<int>(c.role));
  EXPECT_EQ(FlagsOf(placement), c.flags);
  EXPECT_EQ(placement.unit, c.unit);
  EXPECT_EQ(placement.mode(), placement.writable ? 0666U : 0444U);
}

TEST(Kinds, TorchInductor) {
  const char* kind = "torchinductor";
  const Carried files[] = {
      {"inductor/fxgraph/rm/frm2azru/0a1b", kind, Role::kIndex, "h",
       "inductor/fxgraph/rm/frm2azru"},
      {"inductor/aotautograd/ax34ejms/0a1b", kind, Role::kIndex, "h",
       "inductor/aotautograd/ax34ejms"},
      {"inductor/aotautograd/ax34ejms/entry", kind, Role::kIndex, "h",
       "inductor/aotautograd/ax34ejms"},
      {"inductor/ab/cab1.main.so", kind, Role::kNative, "nhp", "inductor/ab/cab1"},
      {"inductor/ab/cab1.main.cpp", kind, Role::kOutput, "nh", "inductor/ab/cab1"},
      {"inductor/ab/cab1.so", kind, Role::kNative, "nhp", "inductor/ab/cab1"},
      {"inductor/ab/cab1.so.load_ok", kind, Role::kProbeMarker, "hpa", "inductor/ab/cab1"},
      {"inductor/ab/cab1.main.o", kind, Role::kOutput, "nhpa", "inductor/ab/cab1"},
      {"inductor/ab/cab1.py", kind, Role::kOutput, "h", "inductor/ab/cab1"},
      {"inductor/ab/0011.best_config", kind, Role::kOutput, "h", ""},
      {"inductor/dynamo/0a1b/entry", kind, Role::kIndex, "h", "inductor/dynamo/0a1b"},
      {"inductor/dynamo/code_state_job_None_.pkl", kind, Role::kContent, "h", ""},
      {"inductor/cache/0011", kind, Role::kContent, "wp", ""},
      {"inductor/triton/0/ABCD/__grp__k.json", "triton", Role::kIndex, "h",
       "inductor/triton/0/ABCD"},
  };
  for (const Carried& c : files) {
    ExpectCarried(c);
  }
}

TEST(Kinds, Triton) {
  const char* unit = "triton/6VHUNY";
  for (const char* ending :
       {"k.source", "k.ttir", "k.ttgir", "k.llir", "k.ptx", "k.cubin", "k.json", "k.hsaco",
        "k.amdgcn", "k.autotune.json", "cuda_utils.cpython-311-x86_64-linux-gnu.so",
        "__triton_launcher.so"}) {
    ExpectCarried(
        {("triton/6VHUNY/" + std::string(ending)).c_str(), "triton", Role::kOutput, "h", unit});
  }
  ExpectCarried({"triton/6VHUNY/__grp__k.json", "triton", Role::kIndex, "h", unit});
}

TEST(Kinds, Vllm) {
  const char* kind = "vllm";
  const char* graph = "vllm/torch_compile_cache/d4ec7c2a7d";
  const char* model = "vllm/torch_compile_cache/torch_aot_compile/9f";
  const Carried files[] = {
      {"vllm/torch_compile_cache/d4ec7c2a7d/rank_0_0/backbone/vllm_compile_cache.py", kind,
       Role::kIndex, "wp", graph},
      {"vllm/torch_compile_cache/d4ec7c2a7d/rank_0_0/backbone/"
       "artifact_compile_range_1_2048_subgraph_0",
       kind, Role::kIndex, "h", graph},
      {"vllm/torch_compile_cache/d4ec7c2a7d/rank_0_0/backbone/artifact_1/fxgraph/ab/c/d", kind,
       Role::kIndex, "h", graph},
      {"vllm/torch_compile_cache/d4ec7c2a7d/rank_0_0_dev0/eagle_head/artifact_x", kind,
       Role::kIndex, "h", graph},
      {"vllm/torch_compile_cache/d4ec7c2a7d/rank_0_0/inductor_cache/fxgraph/ab/fab/1",
       "torchinductor", Role::kOutput, "h",
       "vllm/torch_compile_cache/d4ec7c2a7d/rank_0_0/inductor_cache/fxgraph/ab/fab"},
      {"vllm/torch_compile_cache/d4ec7c2a7d/rank_0_0/backbone/inductor_cache/fxgraph/ab/fab/1",
       "torchinductor", Role::kOutput, "h",
       "vllm/torch_compile_cache/d4ec7c2a7d/rank_0_0/backbone/inductor_cache/fxgraph/ab/fab"},
      {"vllm/torch_compile_cache/d4ec7c2a7d/rank_0_0/backbone/triton_cache/ABC/__grp__k.json",
       "triton", Role::kOutput, "h",
       "vllm/torch_compile_cache/d4ec7c2a7d/rank_0_0/backbone/triton_cache/ABC"},
      {"vllm/torch_compile_cache/torch_aot_compile/9f/rank_0_0/model", kind, Role::kIndex, "h",
       model},
      {"vllm/torch_compile_cache/torch_aot_compile/9f/inductor_cache/ab/cab.main.so",
       "torchinductor", Role::kNative, "nhp",
       "vllm/torch_compile_cache/torch_aot_compile/9f/inductor_cache/ab/cab"},
      {"vllm/modelinfos/llama.json", kind, Role::kContent, "wp", ""},
      {"vllm/deep_gemm/cache/kernel.a.1/kernel.cubin", "deepgemm", Role::kIndex, "hd",
       "vllm/deep_gemm/cache/kernel.a.1"},
      {"vllm/flashinfer_autotune_cache/x/y.json", kind, Role::kContent, "wp",
       "vllm/flashinfer_autotune_cache"},
  };
  for (const Carried& c : files) {
    ExpectCarried(c);
  }
}

TEST(Kinds, KeepMtimesOfNinjaBuilds) {
  const Carried files[] = {
      {"flashinfer/.cache/flashinfer/0.4.0/90a/cached_ops/moe/moe.so", "flashinfer", Role::kIndex,
       "nmwp", "flashinfer/.cache/flashinfer/0.4.0/90a/cached_ops/moe"},
      {"flashinfer/.cache/flashinfer/0.4.0/90a/cached_ops/moe/.ninja_log", "flashinfer",
       Role::kOutput, "nmwp", "flashinfer/.cache/flashinfer/0.4.0/90a/cached_ops/moe"},
      {"flashinfer/.cache/flashinfer/0.4.0/90a/generated/moe/a.cu", "flashinfer", Role::kOutput,
       "mwpa", ""},
      {"torch_extensions/my_ops/my_ops.so", "torch-extensions", Role::kIndex, "nmwp",
       "torch_extensions/my_ops"},
      {"torch_extensions/my_ops/build.ninja", "torch-extensions", Role::kOutput, "nmwp",
       "torch_extensions/my_ops"},
      {"tvm_ffi/add_one/main.so", "tvm-ffi", Role::kIndex, "nmwp", "tvm_ffi/add_one"},
  };
  for (const Carried& c : files) {
    ExpectCarried(c);
  }
}

TEST(Kinds, ClassifyFilesOfTheOtherCompilers) {
  const Carried files[] = {
      {"deepgemm/cache/kernel.gemm.ab/kernel.cubin", "deepgemm", Role::kIndex, "hd",
       "deepgemm/cache/kernel.gemm.ab"},
      {"deepgemm/cache/kernel.gemm.ab/kernel.cu", "deepgemm", Role::kOutput, "hd",
       "deepgemm/cache/kernel.gemm.ab"},
      {"tilelang/0.1.6/linux-x86_64/kernels/ab12/params.pkl", "tilelang", Role::kIndex, "hd",
       "tilelang/0.1.6/linux-x86_64/kernels/ab12"},
      {"tilelang/0.1.6/linux-x86_64/kernels/ab12/kernel_lib.so", "tilelang", Role::kOutput, "nhd",
       "tilelang/0.1.6/linux-x86_64/kernels/ab12"},
      {"cuda/index", "cuda", Role::kContent, "wpa", ""},
      {"cuda/a/b/0123456789", "cuda", Role::kIndex, "wp", ""},
      {"jax/jit_f-00ff-cache", "jax", Role::kIndex, "nhp", ""},
      {"jax/xla_gpu_per_fusion_autotune_cache_dir/x.textproto", "jax", Role::kOutput, "wp",
       "jax/xla_gpu_per_fusion_autotune_cache_dir"},
      {"sglang/flashinfer/autotune/x.json", "sglang", Role::kContent, "wpd",
       "sglang/flashinfer/autotune"},
      {"sglang/triton/ABC/__grp__k.json", "triton", Role::kIndex, "h", "sglang/triton/ABC"},
      {"sglang/.cache/flashinfer/0.4.0/90a/cached_ops/moe/moe.so", "flashinfer", Role::kIndex,
       "nmwp", "sglang/.cache/flashinfer/0.4.0/90a/cached_ops/moe"},
      {"sglang/inductor/fxgraph/ab/fab/1", "torchinductor", Role::kIndex, "h",
       "sglang/inductor/fxgraph/ab/fab"},
      {"cupy/0011.cubin", "cupy", Role::kIndex, "h", ""},
      {"numba/pkg_ab/f.py311.1.nbc", "numba", Role::kIndex, "nh", "numba/pkg_ab"},
      {"cute_dsl/x/y.mlir", "cute-dsl", Role::kIndex, "wp", ""},
  };
  for (const Carried& c : files) {
    ExpectCarried(c);
  }
}

TEST(Kinds, ClassifyTheResultsOfAutotuning) {
  const char* tuned = "flashinfer/.cache/flashinfer/autotune/v2/0011223344556677";
  const Carried files[] = {
      {"flashinfer/.cache/flashinfer/autotune/v2/0011223344556677/manifest.json", "flashinfer",
       Role::kContent, "h", tuned},
      {"flashinfer/.cache/flashinfer/autotune/v2/0011223344556677/entries/00aa.json", "flashinfer",
       Role::kContent, "h", tuned},
      {"helion/00aa.best_config", "helion", Role::kIndex, "h", ""},
      {"helion/triton/0/ABC/__grp__k.json", "triton", Role::kIndex, "h", "helion/triton/0/ABC"},
      {"helion/cute/0/x.mlir", "cute-dsl", Role::kIndex, "wp", ""},
      {"tensorrt/TensorrtExecutionProvider_cache_sm90.timing", "tensorrt", Role::kIndex, "wp", ""},
  };
  for (const Carried& c : files) {
    ExpectCarried(c);
  }
}

TEST(Kinds, ClassifyObjectsOfCuteDslAndSglang) {
  const char* build = "sglang/jit/sm90a/norm/build-0011/deps-2233";
  const Carried files[] = {
      {"sglang/jit/sm90a/norm/build-0011/deps-2233/norm.so", "sglang", Role::kIndex, "nhd", build},
      {"sglang/jit/sm90a/norm/build-0011/deps-2233/sgl_deps.json", "sglang", Role::kOutput, "hd",
       build},
      {"sglang/cute_aot/ab12/flash_attn/00ff.o", "sglang", Role::kIndex, "nhd", ""},
      {"sglang/cute_aot/ab12/00ff.o", "sglang", Role::kIndex, "nhd", ""},
      {"flash_attention/ab12/fwd/00ff.o", "flash-attention", Role::kIndex, "nh", ""},
      {"flash_attention/ab12/00ff.o", "flash-attention", Role::kIndex, "nh", ""},
  };
  for (const Carried& c : files) {
    ExpectCarried(c);
  }
}

TEST(Kinds, ClassifyFilesOfOtherAccelerators) {
  const char* graph = "neuron/neuronxcc-2.21.33363.0+82129205/MODULE_16389+e30acd3a";
  const Carried files[] = {
      {"aiter/module_norm.so", "aiter", Role::kIndex, "np", ""},
      {"miopen/gfx942130.ukdb", "miopen", Role::kIndex, "wp", ""},
      {"miopen/gfx942130.udb", "miopen", Role::kContent, "wp", ""},
      {"miopen/gfx942130.HIP.3_5_1.ufdb.txt", "miopen", Role::kContent, "wp", ""},
      {"miopen/gfx942130.updb.txt", "miopen", Role::kContent, "wp", ""},
      {"miopen/0cc175b9c0f1b6a8/conv.o", "miopen", Role::kIndex, "h", ""},
      {"neuron/neuronxcc-2.21.33363.0+82129205/MODULE_16389+e30acd3a/model.neff", "neuron",
       Role::kIndex, "p", graph},
      {"neuron/neuronxcc-2.21.33363.0+82129205/MODULE_16389+e30acd3a/model.hlo_module.pb", "neuron",
       Role::kOutput, "p", graph},
      {"gaudi/123_ab_syn1.22.recipe", "gaudi", Role::kIndex, "p", "gaudi/123_ab_syn1"},
      {"gaudi/123_ab_syn1.22.metadata", "gaudi", Role::kOutput, "p", "gaudi/123_ab_syn1"},
  };
  for (const Carried& c : files) {
    ExpectCarried(c);
  }
}

TEST(Kinds, NameTheSetOfAutotuneResults) {
  const std::string model = "vllm/torch_compile_cache/torch_aot_compile/9f/inductor_cache";
  const std::pair<std::string, std::string> files[] = {
      {"inductor/ab/0011.best_config", "inductor"},
      {"inductor/cache/0011", "inductor"},
      {model + "/ab/0011.best_config", model},
      {"triton/ABC/kernel.autotune.json", "triton/ABC"},
      {"helion/0011.best_config", "helion"},
      {"vllm/flashinfer_autotune_cache/0.7.0/90a/ff/autotune_configs.json",
       "vllm/flashinfer_autotune_cache"},
      {"sglang/flashinfer/autotune/0.7.0/90a/ff/rank0.json", "sglang/flashinfer/autotune"},
      {"flashinfer/.cache/flashinfer/autotune/v2/00ff/manifest.json",
       "flashinfer/.cache/flashinfer/autotune/v2/00ff"},
      {"flashinfer/.cache/flashinfer/autotune/v2/00ff/entries/01.json",
       "flashinfer/.cache/flashinfer/autotune/v2/00ff"},
      {"tilelang/0.1.6/linux-x86_64/autotuner/ab/best.json",
       "tilelang/0.1.6/linux-x86_64/autotuner"},
      {"jax/xla_gpu_per_fusion_autotune_cache_dir/x.textproto",
       "jax/xla_gpu_per_fusion_autotune_cache_dir"},
      {"miopen/gfx942130.udb", "miopen"},
      {"tensorrt/TensorrtExecutionProvider_cache_sm90.timing", "tensorrt"},
      {"inductor/ab/cab.py", ""},
      {"triton/ABC/kernel.json", ""},
      {"miopen/gfx942130.ukdb", ""},
      {"flashinfer/.cache/flashinfer/0.7.0/90a/cached_ops/moe/moe.so", ""},
  };
  for (const auto& [path, set] : files) {
    const Placement placement = CacheTable::AllPresets().Classify(path);
    EXPECT_TRUE(placement.carried()) << path;
    EXPECT_EQ(placement.autotune_set, set) << path;
  }
}

TEST(Kinds, SkipFilesForTheRightReason) {
  const std::pair<const char*, Skip> files[] = {
      {"inductor/locks/cab.lock", Skip::kLock},
      {"inductor/locks/anything", Skip::kLock},
      {"torch_extensions/my_ops/lock", Skip::kLock},
      {"jax/.lockfile", Skip::kLock},
      {"inductor/fxgraph/ab/fab/.12.34.tmp", Skip::kTemporary},
      {"inductor/tmp.0123/cab.py", Skip::kTemporary},
      {"triton/ABC/tmp.pid_12_ab/k.cubin", Skip::kTemporary},
      {"deepgemm/tmp/uuid/kernel.cu", Skip::kTemporary},
      {"tilelang/0.1/linux-x/.staging/ab/kernel.cu", Skip::kTemporary},
      {"vllm/torch_compile_cache/torch_aot_compile/9f/rank_0_0/model.77.tmp", Skip::kTemporary},
      {"numba/pkg/f.nbi.tmp.0a1b", Skip::kTemporary},
      {"inductor/fxgraph/ab/fab/.nfs0001", Skip::kTemporary},
      {"flashinfer/.cache/flashinfer/0.4.0/90a/flashinfer_jit.log", Skip::kLog},
      {"vllm/torch_compile_cache/ab/rank_0_0/backbone/cache_key_factors.json", Skip::kPrivate},
      {"vllm/torch_compile_cache/ab/rank_0_0/backbone/computation_graph.py", Skip::kPrivate},
      {"vllm/torch_compile_cache/ab/rank_0_0/backbone/transformed_code.py", Skip::kPrivate},
      {"vllm/startup_plan/startup_plan_0011223344556677.json", Skip::kColdMeasurement},
      {"flashinfer/.cache/flashinfer/autotune/v2/00/entries/.autotune_x.tmp", Skip::kTemporary},
      {"flashinfer/.cache/flashinfer/autotune/v3/00/entries/00.json", Skip::kNotAllowed},
      {"sglang/jit/sm90a/norm/build-0011/.staging-1234/norm.so", Skip::kTemporary},
      {"sglang/jit/sm90a/norm/build-0011/deps-2233/build.ninja", Skip::kNotAllowed},
      {"sglang/cute_aot/ab12/00ff.lock", Skip::kLock},
      {"sglang/cute_aot/ab12/.00ff.tmp.o", Skip::kTemporary},
      {"flash_attention/ab12/.00ff.0123.tmp.o", Skip::kTemporary},
      {"flash_attention/ab12/00ff.lock", Skip::kLock},
      {"helion/tmp.0123", Skip::kTemporary},
      {"aiter/build/lock_module_norm", Skip::kLock},
      {"aiter/build/module_norm/build/module_norm.so", Skip::kNotAllowed},
      {"miopen/gfx942130.ukdb-journal", Skip::kNotAllowed},
      {"neuron/neuronxcc-2.21/MODULE_1+2/model.hlo_module.pb.lock", Skip::kLock},
      {"neuron/neuronxcc-2.21/MODULE_1+2/model.log", Skip::kLog},
      {"tensorrt/TensorrtExecutionProvider_TRTKernel_graph_main_sm90.engine", Skip::kPrivate},
      {"inductor/precompiled_headers/x.h.gch", Skip::kNotAllowed},
      {"inductor/fxgraph/ab/fab", Skip::kNotAllowed},
      {"inductor/readme.txt", Skip::kNotAllowed},
      {"jax/jit_f-00ff-atime", Skip::kNotAllowed},
      {"jax/deep/jit_f-cache", Skip::kNotAllowed},
      {"flashinfer/elsewhere", Skip::kNotAllowed},
      {"inductor", Skip::kUnknownCache},
      {"other/x", Skip::kUnknownCache},
      {"inductorx/ab/cab.py", Skip::kUnknownCache},
      {"other/x.lock", Skip::kUnknownCache},
  };
  for (const auto& [path, skip] : files) {
    EXPECT_EQ(SkipName(CacheTable::AllPresets().Classify(path).skip), SkipName(skip)) << path;
  }
}

TEST(Kinds, NeverCarryLocks) {
  for (const std::string& preset : PresetNames()) {
    const auto table = CacheTable::Make({{.name = preset}});
    ASSERT_TRUE(table.ok()) << table.status();
    for (const std::string& directory : table->Directories()) {
      for (const char* name : {"core.12345.lock", "lock", ".lockfile", ".ninja_lock", "locks/a"}) {
        for (const std::string parent :
             {"", "/a", "/a/b", "/.cache/flashinfer/1/90a/cached_ops/a"}) {
          const std::string path = directory + parent + "/" + name;
          EXPECT_EQ(SkipName(table->Classify(path).skip), "lock") << path;
        }
      }
    }
  }
  const auto custom = CacheTable::Make({{.name = "mine", .env = "MINE_DIR"}});
  EXPECT_EQ(SkipName(custom->Classify("mine/ops/lock").skip), "lock");
}

// The locks of each engine at the path where it makes them, and whether its existence alone makes
// other processes wait.
TEST(Kinds, NameTheLocksThatAKilledProcessLeavesBehind) {
  const std::pair<const char*, bool> locks[] = {
      {"torch_extensions/my_ops/lock", true},
      {"torch_extensions/py311_cu130/my_ops/lock", true},
      {"aiter/build/lock_module_norm", true},
      {"aiter/lock_module_norm", true},
      {"aiter/build/module_norm/build/lock", true},
      {"neuron/neuronxcc-2.21/MODULE_1+2/model.hlo_module.pb.lock", true},
      {"tvm_ffi/add_one/lock", false},
      {"flashinfer/.cache/flashinfer/0.7.0/90a/cached_ops/moe/moe.lock", false},
      {"flashinfer/.cache/flashinfer/0.7.0/90a/cached_ops/moe/.ninja_lock", false},
      {"inductor/locks/cab.lock", false},
      {"vllm/torch_compile_cache/9f.lock", false},
      {"sglang/cute_aot/ab12/00ff.lock", false},
      {"flash_attention/ab12/00ff.lock", false},
      {"jax/.lockfile", false},
  };
  for (const auto& [path, is_baton] : locks) {
    const Placement placement = CacheTable::AllPresets().Classify(path);
    EXPECT_EQ(SkipName(placement.skip), "lock") << path;
    EXPECT_EQ(placement.baton, is_baton) << path;
  }
  EXPECT_FALSE(CacheTable::AllPresets().Classify("torch_extensions/lock_ops/lock_ops.so").baton);
}

}  // namespace
}  // namespace cachewarm::caches
