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

// OK when nobody has the file open for writing, which a read lease proves (fcntl(2), F_SETLEASE;
// it is given back at once). ABORTED when somebody has. PERMISSION_DENIED without CAP_LEASE on a
// file of another owner, FAILED_PRECONDITION on a file system without leases: what cannot be
// proven is not captured.
absl::Status CheckNoWriter(const fs::Fd& file, const std::string& path);

// True when inode, size, mtime and ctime are the same: the bytes are too, unless somebody writes.
bool IsUnchanged(const fs::FileStat& before, const fs::FileStat& after);

struct StableOpen {
  const fs::Dir& tree;  // must outlive the source
  std::string path;
  fs::FileStat expected;                               // as it was when the file was chosen
  std::function<void(const std::string&)> on_opening;  // right before; may be empty
  bool detect_writers = true;                          // CheckNoWriter() too
};

// Reads a file that engines may write at any time. Gives exactly the bytes of a file that did not
// change: `expected` and, unless it is not asked for, CheckNoWriter() hold before the first byte
// and again after the last one, else the open or the read that meets the end fails with ABORTED.
absl::StatusOr<std::unique_ptr<bundle::Source>> OpenStable(const StableOpen& open);

}  // namespace cachewarm::capture
