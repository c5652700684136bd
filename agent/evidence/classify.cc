// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/classify.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace cachewarm::agent {
namespace {

using caches::Placement;
using caches::Role;

constexpr std::string_view kMarkerEnd = ".load_ok";

// Returns true if the event shows that the file was changed after `begin`. Opening a file for
// writing and closing it is not sufficient, because engines do that with locks and databases on
// every start. Such a file was changed only if its mtime is also after `begin`.
bool Changed(const FileEvent& event, WallTime begin) {
  switch (event.type) {
    case FileEventType::kCreated:
    case FileEventType::kMovedTo:
      return true;
    case FileEventType::kWritten:
      return event.mtime >= begin;
    default:
      return false;
  }
}

bool Arrived(const FileEvent& event, bool directory_is_write, WallTime begin) {
  return event.type == FileEventType::kDirectoryIn ? directory_is_write : Changed(event, begin);
}

// Collects what the events of one start did to each file, so that each file counts once.
class Tally {
 public:
  Tally(const caches::CacheTable& table, WallTime begin, size_t event_count)
      : table_(table), begin_(begin) {
    files_.reserve(event_count / 2);  // most files are opened and read
  }

  void Add(const FileEvent& event) {
    File& file = Find(event.path);
    if (!file.carried) {
      return;
    }
    const bool arrived = Arrived(event, file.directory_is_write, begin_);
    if (file.role == Role::kIndex) {
      AddIndex(file, event, arrived);
    }
    file.written = file.written || arrived;
    if (arrived && file.role != Role::kContent) {
      first_product_ = first_product_.value_or(event.time);
      last_product_ = event.time;
    }
  }

  // `started` is the start of the container.
  Observation Result(bool complete, WallTime started) const {
    Observation seen;
    for (const auto& [path, file] : files_) {
      if (file.role == Role::kIndex) {
        seen.entries_opened += file.read || (file.held && !file.written) ? 1 : 0;
        seen.entries_written += file.written ? 1 : 0;
      } else if (file.role == Role::kNative && file.written) {
        seen.native_built += IsProbe(path) ? 0 : 1;
      }
    }
    if (first_product_.has_value() && last_index_.has_value()) {
      seen.compile_span = *last_index_ - *first_product_;
    }
    if (last_product_.has_value()) {
      seen.compiled_after = std::max(Duration(0), *last_product_ - started);
    }
    seen.result = complete ? Name(seen) : api::StartResult::kUnknown;
    return seen;
  }

 private:
  struct File {
    bool carried = false;
    bool directory_is_write = false;
    Role role = Role::kContent;
    bool written = false;
    bool read = false;
    bool held = false;  // opened, and not closed after writing
  };

  static api::StartResult Name(const Observation& seen) {
    if (seen.entries_written > 0) {
      return seen.entries_opened > 0 ? api::StartResult::kPartial : api::StartResult::kMiss;
    }
    if (seen.native_built > 0) {
      return seen.entries_opened > 0 ? api::StartResult::kHollow : api::StartResult::kMiss;
    }
    return seen.entries_opened > 0 ? api::StartResult::kHit : api::StartResult::kInert;
  }

  // Updates an index entry (a file with Role::kIndex) for an event. An open file (held) counts as
  // read already, because a mapped file (dlopen) is closed only when the process exits. The close
  // of a file that was open for writing undoes that, because it was not opened to be read.
  void AddIndex(File& file, const FileEvent& event, bool arrived) {
    if (arrived) {
      last_index_ = event.time;
    } else if (event.type == FileEventType::kOpened) {
      file.held = true;
    } else if (event.type == FileEventType::kRead && !file.written) {
      file.read = true;
    }
    if (event.type == FileEventType::kWritten) {
      file.held = false;
    }
  }

  // Returns true if the marker beside a native file says that it only tests the compiler.
  bool IsProbe(std::string_view native) const {
    const auto marker = files_.find(std::string(native).append(kMarkerEnd));
    return marker != files_.end() && marker->second.role == Role::kProbeMarker &&
           marker->second.written;
  }

  File& Find(const std::string& path) {
    const auto [at, added] = files_.try_emplace(path);
    if (added) {
      const Placement placement = table_.Classify(path);
      at->second = {.carried = placement.carried(),
                    .directory_is_write = placement.directory_is_write,
                    .role = placement.role};
    }
    return at->second;
  }

  const caches::CacheTable& table_;
  const WallTime begin_;
  // By path. The keys refer to the paths of the events, which outlive the tally.
  std::unordered_map<std::string_view, File> files_;
  std::optional<WallTime> first_product_;
  std::optional<WallTime> last_product_;
  std::optional<WallTime> last_index_;
};

}  // namespace

Observation ClassifyStart(const EventRecord& record, const api::StartWindow& start,
                          const caches::CacheTable& table) {
  Tally tally(table, WindowBegin(start), record.events.size());
  for (const FileEvent& event : record.events) {
    tally.Add(event);
  }
  return tally.Result(record.complete, start.started_time);
}

std::map<std::string, WallTime> CompiledIn(const EventRecord& record, WallTime begin,
                                           const caches::CacheTable& table) {
  std::map<std::string, WallTime> compiled;
  for (const FileEvent& event : record.events) {
    if (event.type == FileEventType::kOpened || event.type == FileEventType::kRead) {
      continue;
    }
    const Placement placement = table.Classify(event.path);
    if (placement.carried() && placement.role == Role::kIndex &&
        Arrived(event, placement.directory_is_write, begin)) {
      compiled.try_emplace(event.path, event.time);
    }
  }
  return compiled;
}

UsedFiles UsedIn(const EventRecord& record, const caches::CacheTable& table) {
  UsedFiles used{.all = !record.complete, .paths = {}};
  for (const FileEvent& event : record.events) {
    if (!used.paths.contains(event.path) && table.Classify(event.path).carried()) {
      used.paths.insert(event.path);
    }
  }
  return used;
}

}  // namespace cachewarm::agent
