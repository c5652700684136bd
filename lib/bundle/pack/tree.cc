// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/pack/tree.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/tar.h"
#include "lib/bundle/worker_pool.h"

namespace cachewarm::bundle {
namespace {

constexpr unsigned kFileMode = 0444;
constexpr unsigned kDirectoryMode = 0755;
constexpr size_t kKindBytesMax = 64;
constexpr size_t kMembersPerJob = 256;

Member FileHeader(const PackFile& file) {
  return {.path = file.path,
          .type = MemberType::kFile,
          .bytes = file.bytes,
          .mtime_ns = file.mtime_ns,
          .mode = kFileMode};
}

absl::Status CheckFile(const PackFile& file, const Limits& limits) {
  CW_RETURN_IF_ERROR(CheckMember(FileHeader(file), limits));
  if (file.kind.empty() || file.kind.size() > kKindBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\": its kind is empty or longer than {} bytes", file.path, kKindBytesMax));
  }
  if (IsWhiteout(file.path)) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\": the name of a file must not begin with .wh., because OCI tools treat "
                    "such a file as the removal of another one",
                    file.path));
  }
  if (file.mtime_ns < 0) {
    return absl::InvalidArgumentError(fmt::format("\"{}\": its mtime is before 1970", file.path));
  }
  return absl::OkStatus();
}

absl::Status CheckFiles(const std::vector<PackFile>& files, const Limits& limits) {
  Totals totals;
  const std::string* before = nullptr;
  for (const PackFile& file : files) {
    CW_RETURN_IF_ERROR(CheckFile(file, limits));
    if (before != nullptr && *before == file.path) {
      return absl::InvalidArgumentError(fmt::format("\"{}\" is listed twice", file.path));
    }
    before = &file.path;
    totals.entries += 1;
    totals.raw_bytes += file.bytes;
    totals.frame_bytes = totals.raw_bytes;
    totals.packed_bytes = totals.raw_bytes;
    CW_RETURN_IF_ERROR(CheckTotals(totals, limits));
  }
  return absl::OkStatus();
}

}  // namespace

Member PackTree::HeaderOf(size_t member) const {
  if (IsLink(member)) {
    const PackFile& file = files[FileOf(member)];
    return {.path = file.path,
            .type = MemberType::kHardLink,
            .link = files[content_of[FileOf(member)]].path,
            .mtime_ns = file.mtime_ns,
            .mode = kFileMode};
  }
  if (IsFile(member)) {
    return FileHeader(files[FileOf(member)]);
  }
  if (member >= directories.size()) {
    return {.path = whiteouts[member - directories.size()],
            .type = MemberType::kFile,
            .mode = kFileMode};
  }
  return {.path = directories[member], .type = MemberType::kDirectory, .mode = kDirectoryMode};
}

absl::StatusOr<PackTree> ArrangeTree(std::vector<PackFile> files, const Limits& limits) {
  if (files.empty()) {
    return absl::InvalidArgumentError("there is no file to pack");
  }
  std::sort(files.begin(), files.end(),
            [](const PackFile& a, const PackFile& b) { return a.path < b.path; });
  CW_RETURN_IF_ERROR(CheckFiles(files, limits));
  PackTree tree;
  tree.entries.reserve(files.size());
  for (const PackFile& file : files) {
    tree.entries.push_back(
        {.path = file.path, .kind = file.kind, .bytes = file.bytes, .mtime_ns = file.mtime_ns});
  }
  const auto directories = ImpliedDirectories(tree.entries);
  for (const PackFile& file : files) {
    if (directories.contains(file.path)) {
      return absl::InvalidArgumentError(
          fmt::format("\"{}\" is both a file and a directory", file.path));
    }
  }
  tree.directories.assign(directories.begin(), directories.end());
  tree.files = std::move(files);
  return tree;
}

absl::StatusOr<int64_t> BytesInTar(const PackTree& tree, size_t member) {
  const Member header = tree.HeaderOf(member);
  CW_ASSIGN_OR_RETURN(const std::string text, TarHeader(header));
  return static_cast<int64_t>(text.size()) + PaddedToBlock(header.bytes);
}

absl::StatusOr<std::vector<int64_t>> MemberBytes(const PackTree& tree, int threads) {
  std::vector<int64_t> bytes(tree.members());
  CW_RETURN_IF_ERROR(ForEachBatch(threads, bytes.size(), kMembersPerJob,
                                  [&](size_t first, size_t last) -> absl::Status {
                                    for (size_t member = first; member < last; ++member) {
                                      CW_ASSIGN_OR_RETURN(bytes[member], BytesInTar(tree, member));
                                    }
                                    return absl::OkStatus();
                                  }));
  return bytes;
}

}  // namespace cachewarm::bundle
