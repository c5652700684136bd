// SPDX-License-Identifier: Apache-2.0
// torch.utils.cpp_extension: <name>/ with ninja. Its "lock" file is not released by a killed
// process and would hang every later start: it never travels.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind TorchExtensionsKind() {
  const UnitRule extension = {.components = 1};
  return {.name = "torch-extensions",
          .path = "torch_extensions",
          .env = {{"TORCH_EXTENSIONS_DIR"}},
          .nested = {},
          .files = {{.glob = "**/*.so",
                     .role = Role::kIndex,
                     .native = true,
                     .keep_mtime = true,
                     .writable = true,
                     .in_place = true,
                     .unit = extension},
                    {.glob = "*/**",
                     .role = Role::kOutput,
                     .native = true,
                     .keep_mtime = true,
                     .writable = true,
                     .in_place = true,
                     .unit = extension}}};
}

}  // namespace cachewarm::caches
