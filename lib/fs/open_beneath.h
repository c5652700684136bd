// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/fs/dir.h"
#include "lib/fs/fd.h"

// For use inside lib/fs only.
namespace cachewarm::fs {

// Calls openat2(2) below `dir` with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS.
absl::StatusOr<Fd> OpenBeneath(const Dir& dir, const std::string& path, int flags, mode_t mode = 0);

// The parent directory of a path, opened for the *at() system calls: pass them fd() and name().
// name() is the last part of the path. `dir` must outlive the Parent.
class Parent {
 public:
  static absl::StatusOr<Parent> Of(const Dir& dir, std::string_view path);

  int fd() const { return opened_.ok() ? opened_.get() : dir_->fd(); }
  const char* name() const { return name_.c_str(); }

 private:
  Parent(const Dir& dir, Fd opened, std::string name)
      : dir_(&dir), opened_(std::move(opened)), name_(std::move(name)) {}

  const Dir* dir_;
  Fd opened_;  // holds no descriptor if the parent is `dir_` itself
  std::string name_;
};

// Returns "<name of dir>/<path>", for messages.
std::string FullName(const Dir& dir, std::string_view path);

FileStat ToFileStat(const struct ::stat& buffer);

}  // namespace cachewarm::fs
