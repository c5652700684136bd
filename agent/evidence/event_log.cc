// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/event_log.h"

#include <algorithm>
#include <cstdint>

namespace cachewarm::agent {
namespace {

constexpr int64_t kRepeatMs = 100;
constexpr int64_t kNever = INT64_MIN;

WallTime AtMs(int64_t ms) {
  return WallTime(Duration(ms));
}
int64_t ToMs(WallTime time) {
  return time.time_since_epoch().count();
}

}  // namespace

void EventLog::Add(const FileEvent& event) {
  MakeRoom(event.time);
  int64_t path = Intern(event.path);
  if (path < 0) {
    DropBefore(event.time - limits_.keep);
    path = Intern(event.path);
  }
  if (path < 0) {
    Lose(event.time + Duration(1));
    return;
  }
  Store(event, static_cast<uint32_t>(path));
}

bool EventLog::AddIfKnown(const FileEvent& event) {
  MakeRoom(event.time);
  const auto known = numbers_.find(event.path);
  if (known == numbers_.end()) {
    return false;
  }
  Store(event, known->second);
  return true;
}

void EventLog::MakeRoom(WallTime now) {
  if (events_.size() >= limits_.events_max) {
    DropBefore(now - limits_.keep);
  }
  if (events_.size() >= limits_.events_max) {
    DropOldestHalf();
  }
}

void EventLog::Store(const FileEvent& event, uint32_t path) {
  const Stored stored{
      .time_ms = ToMs(event.time), .mtime_ms = ToMs(event.mtime), .path = path, .type = event.type};
  if (!IsRepeat(stored)) {
    events_.push_back(stored);
  }
}

bool EventLog::IsRepeat(const Stored& stored) {
  int64_t& last_ms = paths_[stored.path].last_ms.at(static_cast<size_t>(stored.type));
  // Keep every write, because each may change the mtime. Also keep an event with an earlier time
  // than the last one: the clock was set back.
  const bool repeat = last_ms != kNever && stored.type != FileEventType::kWritten &&
                      stored.time_ms >= last_ms && stored.time_ms - last_ms < kRepeatMs;
  if (!repeat) {
    last_ms = stored.time_ms;
  }
  return repeat;
}

void EventLog::Lose(WallTime now) {
  complete_since_ = std::max(complete_since_, now);
}

void EventLog::Read(WallTime begin, WallTime end, EventRecord& out) const {
  out.complete = out.complete && complete_since_ <= begin;
  // By path: the opens and reads that were returned since the file was last changed.
  std::vector<uint8_t> returned(paths_.size());
  const auto is_repeat = [&returned](const Stored& stored) {
    if (stored.type != FileEventType::kOpened && stored.type != FileEventType::kRead) {
      returned[stored.path] = 0;
      return false;
    }
    const uint8_t bit = stored.type == FileEventType::kOpened ? 1 : 2;
    const bool repeat = (returned[stored.path] & bit) != 0;
    returned[stored.path] |= bit;
    return repeat;
  };
  for (const Stored& stored : events_) {
    const WallTime time = AtMs(stored.time_ms);
    if (time >= begin && time <= end && !is_repeat(stored)) {
      out.events.push_back({.type = stored.type,
                            .time = time,
                            .mtime = AtMs(stored.mtime_ms),
                            .path = *paths_[stored.path].text});
    }
  }
}

int64_t EventLog::Intern(const std::string& path) {
  if (const auto found = numbers_.find(path); found != numbers_.end()) {
    return found->second;
  }
  if (paths_.size() >= limits_.paths_max || path_bytes_ + path.size() > limits_.path_bytes_max) {
    return -1;
  }
  path_bytes_ += path.size();
  const auto number = static_cast<uint32_t>(paths_.size());
  Path& added = paths_.emplace_back();
  added.text = &numbers_.emplace(path, number).first->first;
  added.last_ms.fill(kNever);
  return number;
}

void EventLog::DropBefore(WallTime time) {
  const auto kept = std::find_if(events_.begin(), events_.end(), [time](const Stored& stored) {
    return AtMs(stored.time_ms) >= time;
  });
  if (kept == events_.begin()) {
    return;
  }
  events_.erase(events_.begin(), kept);
  Lose(time);
  Renumber();
}

void EventLog::DropOldestHalf() {
  const size_t half = (events_.size() + 1) / 2;
  Lose(AtMs(events_[half - 1].time_ms) + Duration(1));
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(half));
  Renumber();
}

// Drops the paths that no event uses any longer, and renumbers the others.
void EventLog::Renumber() {
  const std::unordered_map<std::string, uint32_t> old_numbers = std::move(numbers_);
  const std::vector<Path> old_paths = std::move(paths_);
  numbers_ = {};
  paths_ = {};
  path_bytes_ = 0;
  for (Stored& stored : events_) {
    stored.path = static_cast<uint32_t>(Intern(*old_paths[stored.path].text));
  }
}

}  // namespace cachewarm::agent
