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

// The directories below one root that were used last, open: files of one directory lie side by
// side in a bundle, and a walk from the root for each would cost more than the file. At most
// kHandlesMax descriptors. Not thread-safe.
class DirHandles {
 public:
  static constexpr size_t kHandlesMax = 8;

  // `root` must outlive it.
  explicit DirHandles(const fs::Dir& root) : root_(root) {}

  // "" is the root. Valid until the next call.
  absl::StatusOr<const fs::Dir*> Open(std::string_view path);

 private:
  struct Handle {
    std::string path;
    fs::Dir dir;
  };

  const fs::Dir& root_;
  std::vector<Handle> handles_;  // the one used last is first
};

// The directory of a path, "" when it has none, and its last part.
struct SplitPath {
  explicit SplitPath(std::string_view path);

  std::string_view directory;
  std::string_view name;
};

// Makes files below `staging` with the modes of `options`, both of which must outlive it.
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

// Makes every directory that the entries imply.
absl::Status MakeDirectories(const Config& config, const fs::Dir& staging,
                             const UnpackOptions& options);

}  // namespace cachewarm::bundle
