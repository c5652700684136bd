// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"
#include "lib/bundle/unpack/new_file.h"
#include "lib/bundle/unpacker.h"
#include "lib/fs/dir.h"

namespace cachewarm::bundle {

// Keeps the most recently used directories open, at most kHandlesMax. Opening a directory from the
// root of the tree costs more than creating a file, and the files of one directory are adjacent in
// a bundle. Not thread-safe.
class DirHandles {
 public:
  static constexpr size_t kHandlesMax = 8;

  // `root` must outlive this object.
  explicit DirHandles(const fs::Dir& root) : root_(root) {}

  // Returns the directory `path` below the root; "" is the root. Valid until the next call.
  absl::StatusOr<const fs::Dir*> Open(std::string_view path);

 private:
  struct Handle {
    std::string path;
    fs::Dir dir;
  };

  const fs::Dir& root_;
  std::vector<Handle> handles_;  // most recently used first
};

// A path, split into its directory ("" if it has none) and its last part.
struct SplitPath {
  explicit SplitPath(std::string_view path);

  std::string_view directory;
  std::string_view name;
};

// Creates files below `staging` with the modes of `options`. Both must outlive this object.
class TreeFiles : public FileMaker {
 public:
  TreeFiles(const fs::Dir& staging, const UnpackOptions& options)
      : options_(options), handles_(staging) {}

  absl::StatusOr<fs::Fd> Make(const Entry& entry) override;
  absl::Status Finish(const Entry& entry, const fs::Fd& file) override;

 private:
  const UnpackOptions& options_;
  DirHandles handles_;
};

// Creates every directory that the entries imply, on `options.threads` threads.
absl::Status MakeDirectories(const Config& config, const fs::Dir& staging,
                             const UnpackOptions& options);

}  // namespace cachewarm::bundle
