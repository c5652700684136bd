// SPDX-License-Identifier: Apache-2.0
// TVM FFI: ninja builds each inline module in a directory of its own.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind TvmFfiKind() {
  return {.name = "tvm-ffi",
          .path = "tvm_ffi",
          .env = {{"TVM_FFI_CACHE_DIR"}},
          .nested = {},
          .files = NinjaRows("**/*.so", "*/**", {.components = 1}),
          .facts = {.engine = "TVM FFI",
                    .proof = "Assumed to be the layout of ninja builds; not tested with a "
                             "running engine.",
                    .absolute_paths = "build.ninja names the sources: a hit needs the same image.",
                    .hit = "The *.so of the module.",
                    .miss = "ninja rewrites the files of the module in place."}};
}

}  // namespace cachewarm::caches
