// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/api/node_cache.h"
#include "lib/base/clock.h"

namespace cachewarm::agent {

enum class FileEventType {
  kOpened,       // by anybody but us
  kRead,         // closed without having been open for writing
  kCreated,      // appeared under this name (also: found in a directory just made)
  kWritten,      // closed after having been open for writing
  kMovedTo,      // renamed to this name
  kDirectoryIn,  // came with a directory that was renamed into place
};

struct FileEvent {
  FileEventType type = FileEventType::kOpened;
  WallTime time{};   // when we read it from the kernel
  WallTime mtime{};  // kWritten only: the file's mtime then, to tell a lock from a write
  std::string path;  // relative to the generation's root

  friend bool operator==(const FileEvent&, const FileEvent&) = default;
};

// What happened in the trees of one warmup between two times.
struct EventRecord {
  std::vector<FileEvent> events;  // by time
  // False when something may be missing: the kernel's queue or our own bound overflowed, or the
  // watch began after the window did.
  bool complete = true;
};

// API times are whole seconds, rounded down, and the kubelet writes them a moment after the fact:
// events of a start are looked for from one second before it to two seconds after Ready.
inline WallTime WindowBegin(const api::StartWindow& start) {
  return start.started_time - Duration(1000);
}
inline WallTime WindowEnd(const api::StartWindow& start) {
  return start.ready_time + Duration(2000);
}

// Files that were opened or written; what a capture takes.
struct UsedFiles {
  bool all = false;  // the record is incomplete: take every allow-listed file
  std::set<std::string, std::less<>> paths;
};

}  // namespace cachewarm::agent
