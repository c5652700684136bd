// SPDX-License-Identifier: Apache-2.0
// TVM FFI: ninja builds each inline module in a directory of its own.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind TvmFfiKind() {
  return {.name = "tvm-ffi",
          .path = "tvm_ffi",
          .env = {{"TVM_FFI_CACHE_DIR"}},
          .nested = {},
          .files = NinjaRows("**/*.so", "*/**", {.components = 1})};
}

}  // namespace cachewarm::caches
