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

// What is packed, in the order of the tar: directories, parents first, then whiteouts, then files
// by path.
struct PackTree {
  std::vector<std::string> directories;
  std::vector<std::string> whiteouts;  // empty files
  std::vector<PackFile> files;
  std::vector<Entry> entries;  // of `files`, one by one; digest and frame are not known yet
  // By index in `files`: the one whose content it has, as a hard link to it; its own: stored whole.
  // Empty: all are.
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

// Sorts the files and makes sure that they are a tree that `limits` allow. INVALID_ARGUMENT.
absl::StatusOr<PackTree> ArrangeTree(std::vector<PackFile> files, const Limits& limits);

// Header and padded content of one member, in bytes.
absl::StatusOr<int64_t> BytesInTar(const PackTree& tree, size_t member);
// ... of every member.
absl::StatusOr<std::vector<int64_t>> MemberBytes(const PackTree& tree, int threads);

}  // namespace cachewarm::bundle
