// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"
#include "lib/bundle/packer.h"
#include "lib/bundle/policy.h"

namespace cachewarm::bundle {

// The members of a layer in the order of the tar: directories (parents first), whiteouts, files by
// path.
struct PackTree {
  std::vector<std::string> directories;
  std::vector<std::string> whiteouts;  // empty files that remove paths of the base bundle
  std::vector<PackFile> files;
  std::vector<Entry> entries;  // parallel to `files`; WriteLayer() sets digest and frame
  // For each file, the index of the file that holds its content. This is the file's own index, or
  // that of another file if the tar stores this file as a hard link to the other. Empty: there are
  // no hard links.
  std::vector<size_t> content_of;

  size_t members() const { return before_files() + files.size(); }
  bool IsFile(size_t member) const { return member >= before_files(); }
  size_t FileOf(size_t member) const { return member - before_files(); }
  bool IsLink(size_t member) const {
    return IsFile(member) && !content_of.empty() && content_of[FileOf(member)] != FileOf(member);
  }
  size_t before_files() const { return directories.size() + whiteouts.size(); }
  Member HeaderOf(size_t member) const;
};

// Sorts `files` by path and adds the directories that they imply. INVALID_ARGUMENT if they do not
// form a tree within `limits`.
absl::StatusOr<PackTree> ArrangeTree(std::vector<PackFile> files, const Limits& limits);

// Returns the size of one member in the tar: header and padded content.
absl::StatusOr<int64_t> BytesInTar(const PackTree& tree, size_t member);
// Returns BytesInTar() of every member, computed on `threads` threads.
absl::StatusOr<std::vector<int64_t>> MemberBytes(const PackTree& tree, int threads);

}  // namespace cachewarm::bundle
