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
      {.glob = "autotune/v2/*/manifest.json", .unit = {.components = 3}},
      {.glob = "autotune/v2/*/entries/*.json", .unit = {.components = 3}}};
  const std::vector<FileRow> modules =
      NinjaRows("*/*/cached_ops/*/*.so", "*/*/cached_ops/*/*", {.components = 4});
  files.insert(files.end(), modules.begin(), modules.end());
  return {.name = "flashinfer",
          .path = "flashinfer",
          .root = ".cache/flashinfer",
          .env = {{"FLASHINFER_WORKSPACE_BASE"}},
          .nested = {},
          .files = std::move(files)};
}

}  // namespace cachewarm::caches
