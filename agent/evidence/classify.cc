// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/classify.h"

#include <algorithm>
#include <iterator>
#include <optional>
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

bool Arrived(const FileEvent& event, const Placement& placement, WallTime begin) {
  return event.type == FileEventType::kDirectoryIn ? placement.directory_is_write
                                                   : Changed(event, begin);
}

// Counts the events of one start. Its sets hold paths, so that each file counts once.
class Tally {
 public:
  Tally(const caches::CacheTable& table, WallTime begin) : table_(table), begin_(begin) {}

  void Add(const FileEvent& event) {
    const Placement& placement = Place(event.path);
    if (!placement.carried()) {
      return;
    }
    const bool written = Arrived(event, placement, begin_);
    switch (placement.role) {
      case Role::kIndex:
        AddIndex(event, written);
        break;
      case Role::kNative:
        if (written) {
          native_.insert(event.path);
        }
        break;
      case Role::kProbeMarker:
        if (written) {
          probes_.insert(event.path.substr(0, event.path.size() - kMarkerEnd.size()));
        }
        break;
      case Role::kOutput:
      case Role::kContent:
        break;
    }
    if (written && placement.role != Role::kContent) {
      first_product_ = first_product_.value_or(event.time);
      last_product_ = event.time;
    }
  }

  // `started` is the start of the container.
  Observation Result(bool complete, WallTime started) const {
    std::set<std::string> opened = read_;
    std::set_difference(held_.begin(), held_.end(), written_.begin(), written_.end(),
                        std::inserter(opened, opened.end()));
    Observation seen;
    seen.entries_opened = static_cast<int>(opened.size());
    seen.entries_written = static_cast<int>(written_.size());
    seen.native_built = static_cast<int>(
        std::count_if(native_.begin(), native_.end(),
                      [this](const std::string& path) { return !probes_.contains(path); }));
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
  static api::StartResult Name(const Observation& seen) {
    if (seen.entries_written > 0) {
      return seen.entries_opened > 0 ? api::StartResult::kPartial : api::StartResult::kMiss;
    }
    if (seen.native_built > 0) {
      return seen.entries_opened > 0 ? api::StartResult::kHollow : api::StartResult::kMiss;
    }
    return seen.entries_opened > 0 ? api::StartResult::kHit : api::StartResult::kInert;
  }

  // Updates the sets for an event of an index entry (a file with Role::kIndex). An open file
  // (held_) counts as read already, because a mapped file (dlopen) is closed only when the process
  // exits. The close of a file that was open for writing removes it from held_, because it was not
  // opened to be read.
  void AddIndex(const FileEvent& event, bool written) {
    if (written) {
      written_.insert(event.path);
      last_index_ = event.time;
    } else if (event.type == FileEventType::kOpened) {
      held_.insert(event.path);
    } else if (event.type == FileEventType::kRead && !written_.contains(event.path)) {
      read_.insert(event.path);
    }
    if (event.type == FileEventType::kWritten) {
      held_.erase(event.path);
    }
  }

  const Placement& Place(const std::string& path) {
    const auto [at, added] = placements_.try_emplace(path);
    if (added) {
      at->second = table_.Classify(path);
    }
    return at->second;
  }

  const caches::CacheTable& table_;
  const WallTime begin_;
  // By path. The keys refer to the paths of the events, which outlive the tally.
  std::unordered_map<std::string_view, Placement> placements_;
  std::set<std::string> read_;
  std::set<std::string> held_;
  std::set<std::string> written_;
  std::set<std::string> native_;
  std::set<std::string> probes_;
  std::optional<WallTime> first_product_;
  std::optional<WallTime> last_product_;
  std::optional<WallTime> last_index_;
};

}  // namespace

Observation ClassifyStart(const EventRecord& record, const api::StartWindow& start,
                          const caches::CacheTable& table) {
  Tally tally(table, WindowBegin(start));
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
    if (placement.carried() && placement.role == Role::kIndex && Arrived(event, placement, begin)) {
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
