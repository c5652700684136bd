// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "lib/fs/dir.h"

// A bundle holds a tree with one directory for each kind of cache ("inductor/..."). A program that
// only sets TORCHINDUCTOR_CACHE_DIR has the content of "inductor" without the tree. For such a
// program the tree is in kOwnFiles of that directory, and its files are hard links.
namespace cachewarm::cli {

// Path of the tree below TORCHINDUCTOR_CACHE_DIR.
inline constexpr char kTorchTree[] = ".cachewarm/tree";
// Directory of the tree that corresponds to TORCHINDUCTOR_CACHE_DIR.
inline constexpr char kTorchKind[] = "inductor";

// Adds to `tree`/inductor, at the same paths, the files of `torch` that a bundle may hold and that
// are missing there or differ in size or mtime. The added files are hard links or, where the file
// system has none, copies. Skips symbolic links and special files. Of a set of autotune results
// that `torch` has, removes the other files from the tree.
absl::Status LinkIntoTree(const fs::Dir& torch, const fs::Dir& tree);

// Adds to `torch`, at the same paths and in the same way, the files of `tree`/inductor that it
// lacks. Existing files stay as they are. A set of autotune results of which `torch` has a file
// with other bytes stays out as a whole.
absl::Status LinkFromTree(const fs::Dir& tree, const fs::Dir& torch);

}  // namespace cachewarm::cli
