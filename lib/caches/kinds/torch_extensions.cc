// SPDX-License-Identifier: Apache-2.0
// torch.utils.cpp_extension: modules built by ninja in <name>/. The "lock" file is a FileBaton
// before pytorch#190543 (July 2026): a killed process leaves it behind, and every later start waits
// for it.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind TorchExtensionsKind() {
  return {
      .name = "torch-extensions",
      .path = "torch_extensions",
      .env = {{"TORCH_EXTENSIONS_DIR"}},
      .nested = {},
      .files = NinjaRows("**/*.so", "*/**", {.components = 1}),
      .batons = {"*/**/lock"},
      .facts = {.engine = "torch.utils.cpp_extension",
                .proof = "Read from the sources of torch 2.15; not tested with a running engine.",
                .absolute_paths =
                    "build.ninja names the sources and the headers: a hit needs the same image.",
                .hit = "The *.so of the extension.",
                .miss = "ninja rewrites the files of the extension in place."}};
}

}  // namespace cachewarm::caches
