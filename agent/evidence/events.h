// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "lib/api/node_cache.h"
#include "lib/base/clock.h"

namespace cachewarm::agent {

enum class FileEventType {
  kOpened,       // opened by any process but the agent
  kRead,         // closed without having been open for writing
  kCreated,      // created under this name, or found in a new directory
  kWritten,      // closed after having been open for writing
  kMovedTo,      // renamed to this name
  kDirectoryIn,  // found in a directory that was renamed into place
};
inline constexpr size_t kFileEventTypes = static_cast<size_t>(FileEventType::kDirectoryIn) + 1;

struct FileEvent {
  FileEventType type = FileEventType::kOpened;
  WallTime time{};   // when the agent read the event from the kernel
  WallTime mtime{};  // kWritten only: mtime after the close; unchanged if nothing was written
  std::string path;  // relative to the generation's root

  friend bool operator==(const FileEvent&, const FileEvent&) = default;
};

// File events in the trees of one warmup between two times.
struct EventRecord {
  std::vector<FileEvent> events;  // ordered by time
  // False if events may be missing: a queue or log overflowed, or watching began after the start of
  // the window.
  bool complete = true;
};

// Sorts the events by time. Events of one time keep their order. Cheap if they are sorted, as those
// of one tree are unless the clock was set back.
inline void SortByTime(EventRecord& record) {
  const auto is_earlier = [](const FileEvent& a, const FileEvent& b) { return a.time < b.time; };
  if (!std::is_sorted(record.events.begin(), record.events.end(), is_earlier)) {
    std::stable_sort(record.events.begin(), record.events.end(), is_earlier);
  }
}

// The window of a pod start: from one second before started_time to two seconds after ready_time.
// The window is wider than the start itself, because API times are whole seconds, rounded down, and
// kubelet sets them with a delay.
inline WallTime WindowBegin(const api::StartWindow& start) {
  return start.started_time - Duration(1000);
}
inline WallTime WindowEnd(const api::StartWindow& start) {
  return start.ready_time + Duration(2000);
}

// Files that were opened or written; input of a capture.
struct UsedFiles {
  bool all = false;  // the record is incomplete: select every allow-listed file
  std::set<std::string, std::less<>> paths;
};

}  // namespace cachewarm::agent
