// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "lib/base/backoff.h"
#include "lib/base/clock.h"
#include "lib/kube/runtime/namespace_lanes.h"

namespace cachewarm::kube {

// A queue of keys with the semantics of client-go's util/workqueue:
//  - a key that waits is not queued twice (`dirty_`);
//  - a key that is being processed is not returned again before Done(); if it is added in between,
//    it is queued again after Done();
//  - keys are returned in the order of arrival, as far as `lanes` allows (NamespaceLanes);
//  - of several calls of AddAfter() for one key, only the earliest due time counts.
// Thread-safe. `clock` must outlive the queue.
class WorkQueue {
 public:
  explicit WorkQueue(const Clock& clock,
                     BackoffPolicy backoff = {.first = Duration(5),
                                              .most = Duration(300'000),
                                              .factor = 2.0,
                                              .jitter = 0.0},
                     Lanes lanes = {});

  void Add(const std::string& key);
  void AddAfter(const std::string& key, Duration delay);
  // Calls AddAfter() with a delay that grows with each call for the key; Forget() resets it.
  void AddWithBackoff(const std::string& key);
  void Forget(const std::string& key);
  int Failures(const std::string& key) const;

  // Blocks until a key is due. Returns nullopt after `stop`, or once the queue is shut down and
  // empty. Call Done() for every returned key.
  std::optional<std::string> Get(std::stop_token stop);
  void Done(const std::string& key);

  // Accepts no further keys. Get() still returns waiting keys; delayed keys are dropped.
  void ShutDown();
  // Calls ShutDown(), then blocks until Get() has returned every waiting key and Done() was called
  // for each. Returns false after `limit`.
  bool Drain(Duration limit);

  // Returns the number of keys that are due and that Get() has not returned yet.
  size_t size() const;
  size_t delayed() const;

 private:
  using Delays = std::map<std::string, MonoTime>;

  void AddLocked(const std::string& key);
  void AddAfterLocked(const std::string& key, Duration delay);
  // Moves due keys into the queue; returns the next due time, if any.
  std::optional<MonoTime> PromoteDue();

  const Clock& clock_;
  BackoffPolicy backoff_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  NamespaceLanes lanes_;         // keys that are due or processed
  std::set<std::string> dirty_;  // keys that are due, also those that are processed meanwhile
  Delays delayed_;
  std::map<std::string, int> failures_;
  bool shut_down_ = false;
};

}  // namespace cachewarm::kube
