// SPDX-License-Identifier: Apache-2.0
// TorchInductor with its C++ backend (layout as of torch 2.6 to 2.15, torch/_inductor/codecache.py
// and cpu_vec_isa.py).
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind TorchInductorKind() {
  return {.name = "torchinductor",
          .path = "inductor",
          // Inductor writes its precompiled header outside the directory: docs/design/0002.
          .env = {{"TORCHINDUCTOR_CACHE_DIR"}, {"TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0"}},
          .nested = {{"triton/*", "triton"}},
          .files = {
              {.glob = "fxgraph/*/*/*", .role = Role::kIndex, .unit = {.components = 3}},
              {.glob = "aotautograd/*/*", .role = Role::kIndex, .unit = {.components = 2}},
              // g++ writes shared objects under their final name. Later starts only stat the shared
              // object that probes the compiler and the marker beside it, so both are always
              // captured.
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
              {.glob = "*/c*.cpp", .role = Role::kOutput, .unit = {.stem = true}},
              {.glob = "*/c*.h", .role = Role::kOutput, .always = true},
              {.glob = "*/c*.py", .role = Role::kOutput, .unit = {.stem = true}},
              {.glob = "*/*.best_config", .role = Role::kOutput},
              {.glob = "*/*.cubin", .role = Role::kOutput, .in_place = true},
              {.glob = "*/*.hsaco", .role = Role::kOutput, .in_place = true},
              // Autotune timings, rewritten as a whole.
              {.glob = "cache/*", .writable = true, .in_place = true},
          }};
}

}  // namespace cachewarm::caches
