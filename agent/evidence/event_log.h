// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/evidence/events.h"

namespace cachewarm::agent {

// The events of one tree, bounded in number and age. Not thread-safe.
class EventLog {
 public:
  struct Limits {
    size_t events_max = 200'000;
    size_t paths_max = 50'000;
    Duration keep{2 * 3600 * 1000};
  };

  // `since`: nothing that happened earlier was seen.
  EventLog(const Limits& limits, WallTime since) : limits_(limits), complete_since_(since) {}

  // The same event of the same file within 100 ms is one event. When a limit is reached, the
  // oldest half goes, or the event itself; the record is incomplete from then on.
  void Add(const FileEvent& event);
  // Something was lost at `now`.
  void Lose(WallTime now);
  // Appends what happened in [begin, end]; clears `complete` when something may be missing.
  void Read(WallTime begin, WallTime end, EventRecord& out) const;

  size_t size() const { return events_.size(); }

 private:
  struct Stored {
    int64_t time_ms = 0;
    int64_t mtime_ms = 0;
    uint32_t path = 0;
    FileEventType type = FileEventType::kOpened;
  };

  // Number of `path`; -1 when there are too many.
  int64_t Intern(const std::string& path);
  void DropBefore(WallTime time);
  void DropOldestHalf();
  void Renumber();
  bool IsRepeat(const Stored& stored);

  const Limits limits_;
  WallTime complete_since_;
  std::deque<Stored> events_;
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<const std::string*> paths_;          // into numbers_
  std::unordered_map<uint64_t, int64_t> last_ms_;  // by path and type: when it was kept last
};

}  // namespace cachewarm::agent
