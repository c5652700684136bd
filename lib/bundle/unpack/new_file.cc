// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/unpack/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fs/error.h"
#include "lib/fs/file.h"

namespace cachewarm::bundle {
namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

absl::Status WriteContent(const fs::Fd& file, const Entry& entry, std::string_view content) {
  return file.ok() ? Annotate(fs::WriteAll(file, content), entry.path) : absl::OkStatus();
}

absl::Status Close(const fs::Fd& file, const Entry& entry, FileMaker& maker) {
  if (!file.ok()) {
    return absl::OkStatus();
  }
  CW_RETURN_IF_ERROR(SetMtime(entry, file));
  return maker.Finish(entry, file);
}

}  // namespace

absl::Status SetMtime(const Entry& entry, const fs::Fd& file) {
  if (entry.mtime_ns == 0) {
    return absl::OkStatus();
  }
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                             {.tv_sec = entry.mtime_ns / kNanosecondsPerSecond,
                              .tv_nsec = entry.mtime_ns % kNanosecondsPerSecond}};
  return ::futimens(file.get(), &times[0]) == 0 ? absl::OkStatus()
                                                : fs::ErrnoStatus(errno, entry.path);
}

absl::Status EntryDigestMismatch(const Entry& entry) {
  return absl::DataLossError(
      fmt::format("\"{}\" does not match its sha256 in the entry list", entry.path));
}

absl::Status WriteFile(const Entry& entry, std::string_view content, FileMaker& maker) {
  CW_ASSIGN_OR_RETURN(const fs::Fd file, maker.Make(entry));
  CW_RETURN_IF_ERROR(WriteContent(file, entry, content));
  return Close(file, entry, maker);
}

absl::Status PartedFile::Write(int64_t offset, std::string_view content, FileMaker& maker) {
  {
    const std::lock_guard lock(mutex_);
    if (!file_.has_value()) {
      CW_ASSIGN_OR_RETURN(file_, maker.Make(entry_));
    }
  }
  return file_->ok() ? Annotate(fs::WriteAllAt(*file_, content, offset), entry_.path)
                     : absl::OkStatus();
}

absl::StatusOr<bool> PartedFile::EndPart(std::string_view content, FileMaker& maker) {
  const std::lock_guard lock(mutex_);
  if (is_checked_) {
    hash_.Update(content);
  }
  if (--left_parts_ > 0) {
    return false;
  }
  if (is_checked_ && hash_.Finish() != entry_.digest) {
    return EntryDigestMismatch(entry_);
  }
  const fs::Fd file = *std::exchange(file_, std::nullopt);
  CW_RETURN_IF_ERROR(Close(file, entry_, maker));
  return true;
}

}  // namespace cachewarm::bundle
