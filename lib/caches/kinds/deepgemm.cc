// SPDX-License-Identifier: Apache-2.0
// DeepGEMM (csrc/jit) stages the directory of a kernel in tmp/ and renames it into place. A missing
// source or cubin fails an assertion that ends the process, so all files of a directory must travel
// together (a unit).
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind DeepGemmKind() {
  const UnitRule kernel = {.components = 2};
  return {.name = "deepgemm",
          .path = "deepgemm",
          .env = {{"DG_JIT_CACHE_DIR"}, {"SGLANG_DG_CACHE_DIR"}},
          .nested = {},
          .files = {{.glob = "cache/*/kernel.cubin", .role = Role::kIndex, .unit = kernel},
                    {.glob = "cache/*/kernel.*", .role = Role::kOutput, .unit = kernel}},
          .directory_is_write = true,
          .facts = {.engine = "DeepGEMM",
                    .proof = "Read from the sources of August 2026; not tested with a "
                             "running engine.",
                    .absolute_paths = "None in the files. The key holds the include directory of "
                                      "the package: a hit needs the same image.",
                    .hit = "kernel.cubin and the source beside it.",
                    .miss = "One directory per kernel, renamed into place."}};
}

}  // namespace cachewarm::caches
