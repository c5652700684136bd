// SPDX-License-Identifier: Apache-2.0
// TorchInductor with its C++ backend (layout as of torch 2.6 to 2.15, torch/_inductor/codecache.py
// and cpu_vec_isa.py).
#include "lib/caches/kind.h"

namespace cachewarm::caches {

namespace {

KindFacts InductorFacts() {
  return {.engine = "PyTorch (torch.compile)",
          .proof =
              "torch 2.15 ran on a CPU, in end-to-end tests and in a comparison with other "
              "methods. The layout is that of torch 2.6 to 2.15.",
          .absolute_paths =
              "Only in the debug information of c*.so: a cache that was moved to another directory "
              "still hits.",
          .hit = "One file of fxgraph/ or aotautograd/ per graph, then c*.py and c*.so.",
          .miss =
              "The same files. c*.so is written in place, all other files are renamed into "
              "place."};
}

}  // namespace

CacheKind TorchInductorKind() {
  return {
      .name = "torchinductor",
      .path = "inductor",
      // Precompiled headers are disabled, because Inductor writes them outside its cache
      // directory (docs/design/0002-inductor-precompiled-header.md).
      .env = {{"TORCHINDUCTOR_CACHE_DIR"}, {"TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0"}},
      .nested = {{"triton/*", "triton"}},
      .files =
          {
              // An entry holds the source of its C++ kernels, vectorised for the CPU that compiled
              // it: another CPU reads it as a hit and computes wrong numbers.
              {.glob = "fxgraph/*/*/*",
               .role = Role::kIndex,
               .may_hold_cpp = true,
               .unit = {.components = 3}},
              {.glob = "aotautograd/*/*",
               .role = Role::kIndex,
               .may_hold_cpp = true,
               .unit = {.components = 2}},
              // g++ writes shared objects under their final name. Inductor builds one of them only
              // to test the compiler. Later starts only stat that object and its marker (.load_ok),
              // which raises no file event, so both are always captured: the marker by `always`,
              // the object as part of its unit.
              {.glob = "*/c*.so.load_ok",
               .role = Role::kProbeMarker,
               .in_place = true,
               .always = true,
               .unit = {.stem = true}},
              {.glob = "*/c*.so",
               .role = Role::kNative,
               .native = true,
               .in_place = true,
               .unit = {.stem = true}},
              {.glob = "*/c*.o",
               .role = Role::kOutput,
               .native = true,
               .in_place = true,
               .always = true,
               .unit = {.stem = true}},
              {.glob = "*/c*.cpp", .role = Role::kOutput, .native = true, .unit = {.stem = true}},
              {.glob = "*/c*.h", .role = Role::kOutput, .always = true},
              {.glob = "*/c*.py",
               .role = Role::kOutput,
               .may_hold_cpp = true,
               .unit = {.stem = true}},
              // A choice of launch parameters for one kernel, named by the hash of the kernel.
              {.glob = "*/*.best_config", .role = Role::kOutput, .autotune = true},
              // Functions that torch.compile precompiled, and the profile of dynamic shapes, which
              // torch replaces when a start has added shapes to it (torch/_dynamo/package.py,
              // pgo.py).
              {.glob = "dynamo/*/entry",
               .role = Role::kIndex,
               .may_hold_cpp = true,
               .unit = {.components = 2}},
              {.glob = "dynamo/code_state_*.pkl"},
              {.glob = "*/*.cubin", .role = Role::kOutput, .in_place = true},
              {.glob = "*/*.hsaco", .role = Role::kOutput, .in_place = true},
              // Autotune timings; the engine rewrites the whole file.
              {.glob = "cache/*", .writable = true, .in_place = true, .autotune = true},
          },
      .facts = InductorFacts()};
}

}  // namespace cachewarm::caches
