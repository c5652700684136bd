// SPDX-License-Identifier: Apache-2.0
#include "lib/fs/error.h"

#include <cerrno>
#include <system_error>

#include "fmt/format.h"

namespace cachewarm::fs {
namespace {

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::StatusCode::kResourceExhausted;
    case ELOOP:
    case EXDEV:
      return absl::StatusCode::kPermissionDenied;
    case ENOSYS:
    case EROFS:
    case ENOTEMPTY:
    case EBUSY:
      return absl::StatusCode::kFailedPrecondition;
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
      return absl::StatusCode::kInvalidArgument;
    case EAGAIN:
    case EIO:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::ErrnoToStatusCode(error);
  }
}

std::string ReasonOf(int error) {
  switch (error) {
    case ELOOP:
      return "the path contains a symbolic link, which is not followed";
    case EXDEV:
      return "the path leads out of the directory that it must stay in, or to another file system";
    case ENOSYS:
      return "this kernel lacks the system call; Linux 5.6 or newer is needed";
    default:
      return std::generic_category().message(error);
  }
}

}  // namespace

absl::Status ErrnoStatus(int error, std::string_view what) {
  return absl::Status(CodeOf(error), fmt::format("{}: {}", what, ReasonOf(error)));
}

}  // namespace cachewarm::fs
