// SPDX-License-Identifier: Apache-2.0
// Triton 3.x (triton/runtime/cache.py): one directory per key. A group file stores the absolute
// paths of its members, and all of them must exist. Therefore every pod mounts the cache at the
// same path, "cachewarm run" and "load" rewrite them for their directory, and all files of a
// directory must travel together (a unit). Launcher modules do not bind a bundle to a CPU class:
// they are built without -march, and their key contains the architecture (triton/runtime/build.py).
// Kernels of the CPU backend are also *.so; the metadata beside them (*.json) names the backend.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind TritonKind() {
  const UnitRule key = {.components = 1};
  return {
      .name = "triton",
      .path = "triton",
      .env = {{"TRITON_CACHE_DIR"}},
      .nested = {},
      .files =
          {
              {.glob = "*/__grp__*.json", .role = Role::kIndex, .own_paths = true, .unit = key},
              {.glob = "*/*.so", .role = Role::kOutput, .unit = key},
              {.glob = "*/*.autotune.json", .role = Role::kOutput, .autotune = true, .unit = key},
              {.glob = "*/*.json", .role = Role::kOutput, .may_hold_cpp = true, .unit = key},
              {.glob = "*/*.source", .role = Role::kOutput, .unit = key},
              {.glob = "*/*.ttir", .role = Role::kOutput, .unit = key},
              {.glob = "*/*.ttgir", .role = Role::kOutput, .unit = key},
              {.glob = "*/*.llir", .role = Role::kOutput, .unit = key},
              {.glob = "*/*.ptx", .role = Role::kOutput, .unit = key},
              {.glob = "*/*.cubin", .role = Role::kOutput, .unit = key},
              {.glob = "*/*.amdgcn", .role = Role::kOutput, .unit = key},
              {.glob = "*/*.hsaco", .role = Role::kOutput, .unit = key},
          },
      .versions = {{.engine = "triton",
                    .glob = "*/*.json",
                    .place = VersionRow::Place::kJsonMember,
                    .before = "triton_version"}},
      .facts = {.engine = "Triton 3",
                .proof = "Read from the sources of Triton 3.8 and from a published cache of "
                         "vLLM on ROCm; Triton 3.9 compiled for GPUs that were not there. Not "
                         "tested on a GPU.",
                .absolute_paths = "__grp__*.json names its members, and all of them must exist "
                                  "there. Pods mount one path. cachewarm run and load rewrite "
                                  "the file for their directory.",
                .hit = "__grp__*.json, then the files that it names.",
                .miss = "One directory per kernel. Each file is renamed into place."}};
}

}  // namespace cachewarm::caches
