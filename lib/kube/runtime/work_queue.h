// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "lib/base/backoff.h"
#include "lib/base/clock.h"

namespace cachewarm::kube {

// Keys that want attention. The semantics of client-go's util/workqueue:
//  - a key that waits is not queued twice (`dirty`); a key that is being worked on is not handed
//  out
//    again before Done(), an Add() in between makes it wait once more;
//  - fair: in the order of arrival;
//  - AddAfter() keeps the earliest time of a key; time is that of the clock.
// Thread-safe. `clock` must outlive it.
class WorkQueue {
 public:
  explicit WorkQueue(const Clock& clock, BackoffPolicy backoff = {.first = Duration(5),
                                                                  .most = Duration(300'000),
                                                                  .factor = 2.0,
                                                                  .jitter = 0.0});

  void Add(const std::string& key);
  void AddAfter(const std::string& key, Duration delay);
  // AddAfter() with the key's own growing delay; Forget() starts it over.
  void AddWithBackoff(const std::string& key);
  void Forget(const std::string& key);
  int Failures(const std::string& key) const;

  // Blocks until a key is due. nullopt: `stop` was requested, or the queue was shut down and is
  // empty. Every key that Get() gave must be given back by Done().
  std::optional<std::string> Get(std::stop_token stop);
  void Done(const std::string& key);

  // Nothing more is taken in; what waits is still handed out; delayed keys are dropped.
  void ShutDown();
  // ShutDown(), then blocks until everything handed out was given back; false when `limit` passed.
  bool Drain(Duration limit);

  // Keys that are due and not handed out.
  size_t size() const;
  size_t delayed() const;

 private:
  using Delays = std::map<std::string, MonoTime>;

  void AddLocked(const std::string& key);
  void AddAfterLocked(const std::string& key, Duration delay);
  // Moves what has come due; the next time, if any.
  std::optional<MonoTime> Ripen();

  const Clock& clock_;
  BackoffPolicy backoff_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::string> queue_;
  std::set<std::string> dirty_;
  std::set<std::string> processing_;
  Delays delayed_;
  std::map<std::string, int> failures_;
  bool shut_down_ = false;
};

}  // namespace cachewarm::kube
