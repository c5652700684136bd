// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/bundle/stream.h"
#include "lib/fs/dir.h"
#include "lib/fs/fd.h"

namespace cachewarm::capture {

// Checks that no process has the file open for writing, by taking a read lease (fcntl(2),
// F_SETLEASE) and releasing it at once. ABORTED if a process has it open. PERMISSION_DENIED without
// CAP_LEASE for a file of another owner, FAILED_PRECONDITION on a file system without leases.
absl::Status CheckNoWriter(const fs::Fd& file, const std::string& path);

// True if device, inode, size, mtime and ctime are equal: then the content is equal, too, unless a
// process is writing at this moment.
bool IsUnchanged(const fs::FileStat& before, const fs::FileStat& after);

struct StableOpen {
  const fs::Dir& tree;  // must outlive the source
  std::string path;
  fs::FileStat expected;                               // state when the file was selected
  std::function<void(const std::string&)> on_opening;  // called before the open; may be empty
  bool detect_writers = true;                          // also call CheckNoWriter()
};

// Opens a file that compilers may write at any time, and detects changes: before the first byte and
// with the last one it compares the file with `expected` and, if `detect_writers`, calls
// CheckNoWriter(). A difference is ABORTED, returned by this call or by the read that reaches the
// end.
absl::StatusOr<std::unique_ptr<bundle::Source>> OpenStable(const StableOpen& open);

}  // namespace cachewarm::capture
