// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/kube/core/object.h"
#include "lib/kube/core/request.h"
#include "lib/kube/runtime/event_recorder.h"

namespace cachewarm::kube {

// Aggregates the occurrences of events into few Event objects: repetitions increment a counter, and
// events about one object cannot flood the server. No I/O, no clock; not thread-safe.
class EventSeries {
 public:
  explicit EventSeries(const EventRecorderOptions& options) : options_(options) {}

  // The decision about one occurrence: create an Event (`create`), drop it (`is_dropped`), or count
  // it for a later patch (neither is set).
  struct AddResult {
    std::optional<Request> create;
    bool is_dropped = false;
  };
  AddResult Add(const Event& event, MonoTime now, WallTime wall, double random);

  // Returns the counter patches that are due.
  std::vector<Request> Due(MonoTime now);
  // Returns the time of the next due patch.
  std::optional<MonoTime> NextDue() const;
  // Forgets an Event that the server no longer has: its next repetition creates a new one.
  void Forget(const ObjectName& event);
  size_t size() const { return series_.size(); }

 private:
  struct Series {
    ObjectName event;
    int count = 1;
    bool is_unsent = false;
    WallTime last_seen{};
    MonoTime touched{};
    MonoTime sent{};
    std::list<std::string>::iterator age;
  };
  struct Bucket {
    double tokens = 0;
    MonoTime filled{};
  };

  bool TakeToken(const std::string& key, MonoTime now);
  void Remember(const std::string& key, Series series);

  const EventRecorderOptions options_;
  std::map<std::string, Series> series_;
  std::list<std::string> ages_;  // keys of series_, oldest first
  std::map<std::string, Bucket> buckets_;
};

}  // namespace cachewarm::kube
