// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "agent/evidence/inotify.h"
#include "lib/base/clock.h"

namespace cachewarm::agent {

// Events that were read from the kernel's queue and are not handled yet, in order. Not thread-safe.
class PendingEvents {
 public:
  struct Event {
    int watch = -1;
    uint32_t mask = 0;
    std::string name;
    WallTime time{};
  };

  // At most `events_max` events are kept.
  explicit PendingEvents(size_t events_max) : events_max_(events_max) {}

  // Appends an event. Drops an event about a directory if an equal one is pending: the pending one
  // is handled later than both events happened, so its scan sees the result of both. Returns false
  // if the event does not fit.
  bool Add(const Inotify::Event& event, WallTime time);
  // Removes and returns all events.
  std::vector<Event> Take();
  bool empty() const { return events_.empty(); }

 private:
  const size_t events_max_;
  std::vector<Event> events_;
  std::unordered_set<std::string> directories_;  // events about directories, as text
};

}  // namespace cachewarm::agent
