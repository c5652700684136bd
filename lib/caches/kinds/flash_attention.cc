// SPDX-License-Identifier: Apache-2.0
// FlashAttention-4 (flash_attn/cute/cache_utils.py): objects with host and GPU code in
// <fingerprint>/[<name>/]<sha256>.o, each written to a temporary file and renamed. The cache is off
// unless FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED is 1. The fingerprint holds the sources and the
// versions of cutlass and tvm_ffi. Locks end with ".lock".
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind FlashAttentionKind() {
  return {.name = "flash-attention",
          .path = "flash_attention",
          .env = {{"FLASH_ATTENTION_CUTE_DSL_CACHE_DIR"},
                  {"FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED", "1"}},
          .nested = {},
          .files = {{.glob = "**/*.o", .role = Role::kIndex, .native = true}},
          .facts = {.engine = "FlashAttention-4",
                    .proof = "Read from the sources of 2026 (flash_attn/cute/cache_utils.py); not "
                             "tested with a running engine.",
                    .absolute_paths = "None.",
                    .hit = "One *.o per kernel.",
                    .miss = "The same file, renamed into place."}};
}

}  // namespace cachewarm::caches
