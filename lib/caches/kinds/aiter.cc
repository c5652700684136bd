// SPDX-License-Identifier: Apache-2.0
// AITER (aiter/jit/core.py) imports <module>.so from AITER_JIT_DIR. It builds a missing module in
// build/, which is not captured. FileBaton locks ("lock_<module>", and "lock" in the build of each
// module) make a later build wait forever if the process that took one was killed. Opt-in, because
// vLLM hangs on ROCm when AITER_JIT_DIR is set (aiter#3635).
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind AiterKind() {
  return {.name = "aiter",
          .path = "aiter",
          .env = {{"AITER_JIT_DIR"}},
          .nested = {},
          .files = {{.glob = "*.so",
                     .role = Role::kIndex,
                     .native = true,
                     .hard_link = false,
                     .in_place = true}},
          .batons = {"lock_*", "build/lock_*", "build/**/lock", "build/**/.ninja_lock"},
          .opt_in = "vLLM hangs on ROCm when AITER_JIT_DIR is set (aiter#3635).",
          .facts = {.engine = "AITER (ROCm)",
                    .proof = "Read from the sources of 2026 (aiter/jit/core.py); not tested with a "
                             "running engine.",
                    .absolute_paths = "None known.",
                    .hit = "One module_*.so per module.",
                    .miss = "The same file, after a build in build/, which is not captured."}};
}

}  // namespace cachewarm::caches
