// SPDX-License-Identifier: Apache-2.0
// FlashInfer: modules built by ninja below <base>/.cache/flashinfer/<version>/<architectures>/.
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
       .always = true}};
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
