// SPDX-License-Identifier: Apache-2.0
// FlashInfer: modules built by ninja below <base>/.cache/flashinfer/<version>/<architectures>/, and
// since 0.7 autotune results below <base>/.cache/flashinfer/autotune/v2/<environment>/
// (flashinfer/autotune_cache.py): one file per operation, written to a temporary file and renamed.
// The results of one environment travel together (a unit).
#include <utility>

#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind FlashInferKind() {
  std::vector<FileRow> files = {
      {.glob = "cubins/**", .role = Role::kOutput, .writable = true, .in_place = true},
      {.glob = "*/*/generated/**",
       .role = Role::kOutput,
       .keep_mtime = true,
       .writable = true,
       .in_place = true,
       .always = true},
      {.glob = "autotune/v2/*/manifest.json", .autotune = true, .unit = {.components = 3}},
      {.glob = "autotune/v2/*/entries/*.json", .autotune = true, .unit = {.components = 3}}};
  const std::vector<FileRow> modules =
      NinjaRows("*/*/cached_ops/*/*.so", "*/*/cached_ops/*/*", {.components = 4});
  files.insert(files.end(), modules.begin(), modules.end());
  return {.name = "flashinfer",
          .path = "flashinfer",
          .root = ".cache/flashinfer",
          .env = {{"FLASHINFER_WORKSPACE_BASE"}},
          .nested = {},
          .files = std::move(files),
          .versions = {{.engine = "flashinfer", .glob = "*/*/cached_ops/**"},
                       {.engine = "flashinfer", .glob = "*/*/generated/**"}},
          .facts = {.engine = "FlashInfer",
                    .proof = "Read from the sources of FlashInfer 0.7.0; not tested with a "
                             "running engine.",
                    .absolute_paths = "build.ninja and .ninja_log name the sources and the CUDA "
                                      "directory: a hit needs the same image.",
                    .hit = "The *.so of a module, or one file of autotune/v2/ per operation.",
                    .miss = "ninja rewrites the files of a module in place. Autotune results are "
                            "renamed into place."}};
}

}  // namespace cachewarm::caches
