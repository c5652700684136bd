// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "lib/fs/dir.h"

// A bundle holds a tree with one directory for each kind of cache ("inductor/..."). A program that
// only sets TORCHINDUCTOR_CACHE_DIR has the content of "inductor" without the tree. For it the tree
// is below kOwnFiles of that directory, and its files are hard links.
namespace cachewarm::cli {

// Path of the tree below TORCHINDUCTOR_CACHE_DIR.
inline constexpr char kTorchTree[] = ".cachewarm/tree";
// Directory of the tree that corresponds to TORCHINDUCTOR_CACHE_DIR.
inline constexpr char kTorchKind[] = "inductor";

// Gives the files of `torch` that a bundle may hold the same paths in `tree`/inductor: a new file,
// and one that differs there in size or mtime. They are hard links or, where the file system has
// none, copies. Symbolic links and special files are skipped.
absl::Status LinkIntoTree(const fs::Dir& torch, const fs::Dir& tree);

// Gives the files of `tree`/inductor that `torch` lacks the same paths in `torch`, in the same way.
// Existing files stay as they are.
absl::Status LinkFromTree(const fs::Dir& tree, const fs::Dir& torch);

}  // namespace cachewarm::cli
