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
// F_SETLEASE) and releasing it at once. Errors: ABORTED if a process has it open for writing;
// PERMISSION_DENIED if the file has another owner and the agent lacks CAP_LEASE;
// FAILED_PRECONDITION if the file system has no leases.
absl::Status CheckNoWriter(const fs::Fd& file, const std::string& path);

// True if device, inode, size, mtime and ctime are equal. Then the content is equal too, unless a
// process is writing at this moment.
bool IsUnchanged(const fs::FileStat& before, const fs::FileStat& after);

struct StableOpen {
  const fs::Dir& tree;  // must outlive the returned source
  std::string path;
  fs::FileStat expected;                               // state when the file was selected
  std::function<void(const std::string&)> on_opening;  // called before the open; may be empty
  bool detect_writers = true;                          // also call CheckNoWriter()
};

// Opens a file that compilers may write at any time. Checks at the open, and again with the read of
// the last byte, that the file still matches `expected` and, if `detect_writers`, that no process
// has it open for writing. If a check fails, this call or that read returns ABORTED.
absl::StatusOr<std::unique_ptr<bundle::Source>> OpenStable(const StableOpen& open);

}  // namespace cachewarm::capture
