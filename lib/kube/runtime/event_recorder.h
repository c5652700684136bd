// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "lib/base/clock.h"
#include "lib/codec/json_fwd.h"
#include "lib/kube/runtime/reflector.h"

namespace cachewarm::kube {

// What happened to `regarding`, for people who read `kubectl describe`.
struct Event {
  Object regarding;
  bool is_warning = false;
  std::string reason;  // UpperCamelCase, from a fixed list
  std::string action;  // what was done, UpperCamelCase
  std::string note;    // one sentence; cut at 1 kB
};

// Where events go. Thread-safe; never blocks and never fails for the caller.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void Record(Event event) = 0;
};

struct EventRecorderOptions {
  std::string controller;           // reportingController, "cachewarm.io/operator"
  std::string instance;             // reportingInstance, the pod's name
  std::string ns = "default";       // where events about cluster-scoped objects go
  size_t queue_max = 1024;          // further events are dropped and counted
  size_t series_max = 4096;         // remembered for aggregation; the oldest is forgotten
  Duration series_window{360'000};  // a repeat within it counts up instead of being a new event
  int burst = 25;                   // events per object and reason at once,
  Duration refill{300'000};         // then one per this (client-go's spam filter)
};

// Writes events.k8s.io/v1 on a thread of its own. The same event again within series_window becomes
// a patch of series.count of the first one, at most every 10 s.
class EventRecorder final : public EventSink {
 public:
  EventRecorder(const Runtime& runtime, const EventRecorderOptions& options);
  // Stops, without waiting for what is queued.
  ~EventRecorder() override;

  void Record(Event event) override;
  // Blocks until everything recorded so far was sent or dropped; false when `limit` passed.
  bool Flush(Duration limit);
  size_t dropped() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::jthread writer_;
};

}  // namespace cachewarm::kube
