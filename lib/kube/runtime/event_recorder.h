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

// One event about `regarding`, shown by `kubectl describe`.
struct Event {
  Object regarding;
  bool is_warning = false;
  std::string reason;  // UpperCamelCase, from a fixed list
  std::string action;  // the action taken, UpperCamelCase
  std::string note;    // one sentence; truncated to 1 kB
};

// Receives events. Thread-safe; never blocks the caller and never fails.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void Record(Event event) = 0;
};

struct EventRecorderOptions {
  std::string controller;           // reportingController, "cachewarm.io/operator"
  std::string instance;             // reportingInstance, the pod's name
  std::string ns = "default";       // namespace of events about cluster-scoped objects
  size_t queue_max = 1024;          // length of the queue; further events are dropped and counted
  size_t series_max = 4096;         // maximum Events remembered; a new one replaces the oldest
  Duration series_window{360'000};  // an event this soon after an equal one is a repetition
  int burst = 25;                   // events per object and reason that may be sent at once
  Duration refill{300'000};         // time after which one more may be sent, as in client-go
};

// Writes events.k8s.io/v1 objects on its own thread. Repetitions of an event create no further
// object: they are added to series.count of the first one, which is patched at most every 10 s.
// An event that is not written within 3 s, for example because a webhook does not answer, is
// dropped, and so are the events of its namespace in the next five minutes, so that the events of
// other namespaces need not wait.
class EventRecorder final : public EventSink {
 public:
  EventRecorder(const Runtime& runtime, const EventRecorderOptions& options);
  // Stops without sending queued events.
  ~EventRecorder() override;

  void Record(Event event) override;
  // Blocks until all events recorded so far were sent or dropped; returns false after `limit`.
  bool Flush(Duration limit);
  size_t dropped() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::jthread writer_;
};

}  // namespace cachewarm::kube
