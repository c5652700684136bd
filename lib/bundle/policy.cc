// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/policy.h"

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/utf8.h"

namespace cachewarm::bundle {
namespace {

// Bundles of at most this size are exempt from ratio_max, because a few very regular files may
// compress better than that ratio.
constexpr int64_t kRatioFreeBytes = 64LL << 20;

constexpr size_t kShownBytes = 200;

absl::Status MemberRefused(std::string_view path, std::string_view reason) {
  return absl::InvalidArgumentError(
      fmt::format("member \"{}\" is refused: {}", Printable(path.substr(0, kShownBytes)), reason));
}

std::string_view TypeName(MemberType type) {
  switch (type) {
    case MemberType::kFile:
      return "file";
    case MemberType::kDirectory:
      return "directory";
    case MemberType::kHardLink:
      return "hard link";
    case MemberType::kSymbolicLink:
      return "symbolic link";
    case MemberType::kDevice:
      return "device";
    case MemberType::kFifo:
      return "FIFO";
    case MemberType::kOther:
      break;
  }
  return "member of unknown type";
}

absl::Status CheckLink(const Member& member, const Limits& limits) {
  if (!CheckPath(member.link, limits).ok()) {
    return MemberRefused(member.path, "it is a hard link whose target is not a valid path");
  }
  return member.bytes == 0 ? absl::OkStatus()
                           : MemberRefused(member.path, "it is a hard link with content");
}

}  // namespace

absl::Status CheckPath(std::string_view path, const Limits& limits) {
  if (path.empty() || path.front() == '/') {
    return MemberRefused(path, "the path is empty or absolute");
  }
  if (path.size() > static_cast<size_t>(limits.path_bytes_max)) {
    return MemberRefused(path,
                         fmt::format("the path is longer than {} bytes", limits.path_bytes_max));
  }
  if (!IsPlainUtf8(path)) {
    return MemberRefused(path, "the path is not UTF-8 or holds control characters");
  }
  int depth = 0;
  for (std::string_view rest = path;;) {
    const size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part.empty() || part == "." || part == "..") {
      return MemberRefused(path, "the path has an empty, \".\" or \"..\" part");
    }
    if (part.size() > static_cast<size_t>(limits.name_bytes_max)) {
      return MemberRefused(path,
                           fmt::format("a name is longer than {} bytes", limits.name_bytes_max));
    }
    if (++depth > limits.depth_max) {
      return MemberRefused(path,
                           fmt::format("it is nested deeper than {} levels", limits.depth_max));
    }
    if (slash == std::string_view::npos) {
      return absl::OkStatus();
    }
    rest.remove_prefix(slash + 1);
  }
}

bool IsWhiteout(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with(".wh.");
}

absl::Status CheckMember(const Member& member, const Limits& limits) {
  constexpr unsigned kSpecialBits = 07000;
  CW_RETURN_IF_ERROR(CheckPath(member.path, limits));
  if (member.type == MemberType::kHardLink) {
    CW_RETURN_IF_ERROR(CheckLink(member, limits));
  } else if (member.type != MemberType::kFile && member.type != MemberType::kDirectory) {
    return MemberRefused(
        member.path,
        fmt::format("it is a {}; a bundle may contain only files, directories and hard links to "
                    "its own files",
                    TypeName(member.type)));
  }
  if ((member.mode & kSpecialBits) != 0) {
    return MemberRefused(member.path, "it is setuid, setgid or sticky");
  }
  if (member.sparse) {
    return MemberRefused(member.path, "it is a sparse file");
  }
  if (member.has_extended_attributes) {
    return MemberRefused(member.path, "it has extended attributes or an ACL");
  }
  if (member.bytes < 0 || member.bytes > limits.file_bytes_max) {
    return MemberRefused(member.path,
                         fmt::format("its size {} is not between 0 and {} (limits.fileBytes)",
                                     member.bytes, limits.file_bytes_max));
  }
  if (member.type == MemberType::kDirectory && member.bytes != 0) {
    return MemberRefused(member.path, "it is a directory with content");
  }
  return absl::OkStatus();
}

absl::Status CheckTotals(const Totals& totals, const Limits& limits) {
  if (totals.entries > limits.entries_max) {
    return absl::InvalidArgumentError(
        fmt::format("the bundle is refused: {} files, more than {} (limits.files)", totals.entries,
                    limits.entries_max));
  }
  if (totals.raw_bytes > limits.total_bytes_max) {
    return absl::InvalidArgumentError(
        fmt::format("the bundle is refused: {} bytes uncompressed, more than {} (limits.bytes)",
                    totals.raw_bytes, limits.total_bytes_max));
  }
  if (totals.frame_bytes > kRatioFreeBytes &&
      totals.frame_bytes / limits.ratio_max > totals.packed_bytes) {
    return absl::InvalidArgumentError(
        fmt::format("the bundle is refused: {} bytes are compressed to {}, more than {} to 1 "
                    "(limits.ratio)",
                    totals.frame_bytes, totals.packed_bytes, limits.ratio_max));
  }
  if (totals.raw_bytes > kRatioFreeBytes &&
      totals.raw_bytes / limits.ratio_max > totals.frame_bytes) {
    return absl::InvalidArgumentError(fmt::format(
        "the bundle is refused: files of {} bytes take {} in the tar, more than {} to 1 "
        "(limits.ratio)",
        totals.raw_bytes, totals.frame_bytes, limits.ratio_max));
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::bundle
