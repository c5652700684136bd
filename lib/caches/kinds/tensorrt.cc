// SPDX-License-Identifier: Apache-2.0
// TensorRT's timing cache as ONNX Runtime keeps it: one
// TensorrtExecutionProvider_cache_sm<N>.timing per GPU architecture, rewritten when an engine is
// built. TensorRT itself has no variable for it. TensorRT engines are never captured: they hold the
// weights of the model, and ONNX Runtime does not check them against the model or the version.
// Opt-in, because the variables turn the timing cache on.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind TensorrtKind() {
  return {.name = "tensorrt",
          .path = "tensorrt",
          .env = {{"ORT_TENSORRT_CACHE_PATH"},
                  {"ORT_TENSORRT_TIMING_CACHE_ENABLE", "1"},
                  {"ORT_TENSORRT_TIMING_CACHE_PATH"}},
          .nested = {},
          .files = {{.glob = "*.engine", .skip = Skip::kPrivate},
                    {.glob = "*.timing",
                     .role = Role::kIndex,
                     .writable = true,
                     .in_place = true,
                     .autotune = true}},
          .opt_in = "The variables turn the timing cache on.",
          .facts = {.engine = "ONNX Runtime with TensorRT",
                    .proof = "Read from the sources of ONNX Runtime (GetTimingCachePath); not "
                             "tested with a running engine.",
                    .absolute_paths = "None.",
                    .hit = "The *.timing file of the GPU architecture.",
                    .miss = "The same file, in place, after an engine was built."}};
}

}  // namespace cachewarm::caches
