// SPDX-License-Identifier: Apache-2.0
// torch.utils.cpp_extension: <name>/ with ninja. Its "lock" file is not released by a killed
// process and would hang every later start: it never travels.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind TorchExtensionsKind() {
  return {.name = "torch-extensions",
          .path = "torch_extensions",
          .env = {{"TORCH_EXTENSIONS_DIR"}},
          .nested = {},
          .files = NinjaRows("**/*.so", "*/**", {.components = 1})};
}

}  // namespace cachewarm::caches
