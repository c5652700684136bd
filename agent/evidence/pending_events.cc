// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/pending_events.h"

#include <sys/inotify.h>

#include <utility>

#include "fmt/format.h"

namespace cachewarm::agent {

bool PendingEvents::Add(const Inotify::Event& event, WallTime time) {
  if (events_.size() >= events_max_) {
    return false;
  }
  if ((event.mask & IN_ISDIR) != 0 &&
      !directories_.insert(fmt::format("{}/{}/{}", event.watch, event.mask, event.name)).second) {
    return true;
  }
  events_.push_back(
      {.watch = event.watch, .mask = event.mask, .name = std::string(event.name), .time = time});
  return true;
}

std::vector<PendingEvents::Event> PendingEvents::Take() {
  directories_.clear();
  return std::exchange(events_, {});
}

}  // namespace cachewarm::agent
