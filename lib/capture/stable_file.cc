// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/stable_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "lib/base/status.h"
#include "lib/fs/error.h"
#include "lib/fs/file.h"

namespace cachewarm::capture {
namespace {

absl::Status Changed(const std::string& path) {
  return absl::AbortedError(fmt::format("{} changed while it was captured", path));
}

class StableSource final : public bundle::Source {
 public:
  StableSource(fs::Fd file, const StableOpen& open)
      : file_(std::move(file)),
        path_(open.path),
        expected_(open.expected),
        detect_writers_(open.detect_writers) {}

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    CW_ASSIGN_OR_RETURN(const size_t got, fs::ReadAt(file_, offset_, buffer.data(), buffer.size()));
    offset_ += static_cast<int64_t>(got);
    const bool at_end = got == 0 || offset_ >= expected_.bytes;
    if (!buffer.empty() && at_end && !checked_) {
      CW_RETURN_IF_ERROR(CheckStill());
    }
    return got;
  }

 private:
  // Checks that the file is unchanged. Called when the last byte has been read. The read that
  // returns 0 would be too late, because a reader that knows the size never makes it.
  absl::Status CheckStill() {
    CW_ASSIGN_OR_RETURN(const fs::FileStat now, fs::StatFile(file_));
    if (offset_ != expected_.bytes || !IsUnchanged(expected_, now)) {
      return Changed(path_);
    }
    if (detect_writers_) {
      CW_RETURN_IF_ERROR(CheckNoWriter(file_, path_));
    }
    checked_ = true;
    return absl::OkStatus();
  }

  const fs::Fd file_;
  const std::string path_;
  const fs::FileStat expected_;
  const bool detect_writers_;
  int64_t offset_ = 0;
  bool checked_ = false;
};

}  // namespace

absl::Status CheckNoWriter(const fs::Fd& file, const std::string& path) {
  // The kernel signals this process if the file is opened for writing while the lease is held. Use
  // SIGURG, which is ignored by default; SIGIO would end the process.
  if (::fcntl(file.get(), F_SETSIG, SIGURG) != 0 || ::fcntl(file.get(), F_SETLEASE, F_RDLCK) != 0) {
    const int error = errno;
    switch (error) {
      case EAGAIN:
        return absl::AbortedError(fmt::format("{} is open for writing", path));
      case EACCES:
      case EPERM:
        return absl::PermissionDeniedError(fmt::format(
            "{}: cannot check whether a process is writing it: grant the agent CAP_LEASE", path));
      case EINVAL:
      case ENOLCK:
        return absl::FailedPreconditionError(fmt::format(
            "{}: the file system does not support leases: put the caches on a local disk", path));
      default:
        return fs::ErrnoStatus(error, path);
    }
  }
  ::fcntl(file.get(), F_SETLEASE, F_UNLCK);
  return absl::OkStatus();
}

bool IsUnchanged(const fs::FileStat& before, const fs::FileStat& after) {
  return before.device == after.device && before.inode == after.inode &&
         before.bytes == after.bytes && before.mtime_ns == after.mtime_ns &&
         before.ctime_ns == after.ctime_ns;
}

absl::StatusOr<std::unique_ptr<bundle::Source>> OpenStable(const StableOpen& open) {
  if (open.on_opening) {
    open.on_opening(open.path);
  }
  absl::StatusOr<fs::Fd> file = open.tree.OpenFile(open.path);
  if (absl::IsNotFound(file.status())) {
    return Changed(open.path);
  }
  CW_RETURN_IF_ERROR(file.status());
  if (open.detect_writers) {
    CW_RETURN_IF_ERROR(CheckNoWriter(*file, open.path));
  }
  CW_ASSIGN_OR_RETURN(const fs::FileStat now, fs::StatFile(*file));
  if (!IsUnchanged(open.expected, now)) {
    return Changed(open.path);
  }
  return std::make_unique<StableSource>(*std::move(file), open);
}

}  // namespace cachewarm::capture
