// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "lib/base/backoff.h"
#include "lib/base/clock.h"

namespace cachewarm::kube {

enum class WatcherActionType {
  kList,   // request the page after `continue_token`, then call OnPage() or OnListFailure()
  kWatch,  // watch from `resource_version`; call OnProgress() per event, then OnWatchEnd()
  kSleep,  // wait for `delay`, then call Next() again
};

struct WatcherAction {
  WatcherActionType type = WatcherActionType::kList;
  std::string continue_token;
  int page_items = 0;  // items per page of a list
  std::string resource_version;
  Duration delay{0};
};

// Implements list and watch as a state machine without I/O: Empty → Listing → Watching.
//  - After a failed list it starts a new list. When IsFirstPage() returns true, the caller discards
//    all pages received so far.
//  - A page over the local limit (RESOURCE_EXHAUSTED without a 429) is requested again at once with
//    an eighth of the items, so that no tenant can block a list by creating many large objects. One
//    item always fits: servers limit objects to 1.5 MiB. Each received page doubles the number of
//    items again.
//  - After OUT_OF_RANGE (410) it lists again, without backoff if nothing failed in the last 120 s.
//  - After a watch that ended regularly or was cut off it watches again from the last version.
//  - INVALID_ARGUMENT from a watch means undecodable events: it lists again, with backoff.
//  - A watch that ends at once without an event counts as a failure.
//  - The backoff after failures grows from 0.8 s to 30 s and is reset after 120 s without failure.
// Not thread-safe.
class Watcher {
 public:
  explicit Watcher(BackoffPolicy backoff = {.first = Duration(800),
                                            .most = Duration(30'000),
                                            .factor = 2.0,
                                            .jitter = 0.5},
                   int page_items = 500);

  // Returns the next step. `random` is in [0, 1).
  WatcherAction Next(MonoTime now, double random);

  // Records a received page; an empty `continue_token` marks the last one. Returns true if the list
  // is complete now.
  bool OnPage(std::string continue_token, std::string resource_version);
  // Returns true if the page that Next() requested is the first one of a new list.
  bool IsFirstPage() const { return continue_token_.empty(); }
  void OnListFailure(const absl::Status& status, MonoTime now);
  // Records the version of an event or bookmark.
  void OnProgress(std::string resource_version);
  void OnWatchEnd(const absl::Status& status, MonoTime now);

 private:
  enum class State { kEmpty, kListing, kWatching };
  bool FailedRecently(MonoTime now) const;
  void RecordFailure(MonoTime now);
  void Fail(MonoTime now);
  void Restart();

  BackoffPolicy backoff_;
  int page_items_most_;
  int page_items_;
  State state_ = State::kEmpty;
  std::string continue_token_;
  std::string resource_version_;
  int failures_ = 0;
  bool sleep_due_ = false;
  MonoTime last_failure_{};
  MonoTime watch_began_{};
  bool received_event_ = false;  // the running watch has delivered an event
};

}  // namespace cachewarm::kube
