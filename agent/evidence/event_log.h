// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/evidence/events.h"

namespace cachewarm::agent {

// The events of one tree, limited in number. Read() returns those of a window of time; a window is
// incomplete if some of its events may be missing. Not thread-safe.
class EventLog {
 public:
  struct Limits {
    size_t events_max = 200'000;
    size_t paths_max = 50'000;
    size_t path_bytes_max = 8U << 20U;  // of all distinct paths
    Duration keep{2 * 3600 * 1000};
  };

  // Events before `since` are unknown: windows that begin earlier are incomplete.
  EventLog(const Limits& limits, WallTime since) : limits_(limits), complete_since_(since) {}

  // Appends an event. Events of one type and file within 100 ms count as one, except kWritten. If
  // events_max, paths_max or path_bytes_max is reached, drops the events older than `keep`. If the
  // log still has events_max events, drops the older half of them; if it still has too many or too
  // long paths, drops the new event. Windows that begin before a dropped event become incomplete.
  void Add(const FileEvent& event);
  // Adds an event as Add() does if the log has one of this path; otherwise returns false.
  bool AddIfKnown(const FileEvent& event);
  // Drops the events that are older than `keep` at `now`.
  void DropOld(WallTime now) { DropBefore(now - limits_.keep); }
  // Marks all windows that begin before `now` as incomplete.
  void Lose(WallTime now);
  // Appends the events in [begin, end] to `out`; sets `out.complete` to false if the window is
  // incomplete. Of several opens, or several reads, of a file between two changes of it, appends
  // only the first.
  void Read(WallTime begin, WallTime end, EventRecord& out) const;

  size_t size() const { return events_.size(); }

 private:
  struct Stored {
    int64_t time_ms = 0;
    int64_t mtime_ms = 0;
    uint32_t path = 0;
    FileEventType type = FileEventType::kOpened;
  };

  struct Path {
    const std::string* text = nullptr;  // a key of numbers_
    // By type: the time of the last kept event; INT64_MIN if there is none.
    std::array<int64_t, kFileEventTypes> last_ms;
  };

  void MakeRoom(WallTime now);
  void Store(const FileEvent& event, uint32_t path);
  // Returns the number of `path`; a new path gets one. Returns -1 for a new path that exceeds
  // paths_max or path_bytes_max.
  int64_t Intern(const std::string& path);
  void DropBefore(WallTime time);
  void DropOldestHalf();
  void Renumber();
  bool IsRepeat(const Stored& stored);

  const Limits limits_;
  WallTime complete_since_;
  std::deque<Stored> events_;
  std::unordered_map<std::string, uint32_t> numbers_;
  size_t path_bytes_ = 0;
  std::vector<Path> paths_;  // by number
};

}  // namespace cachewarm::agent
