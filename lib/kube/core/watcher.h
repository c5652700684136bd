// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "lib/base/backoff.h"
#include "lib/base/clock.h"

namespace cachewarm::kube {

enum class WatcherActionType {
  kList,   // request the page after `continue_token` and report OnPage() or OnFailure()
  kWatch,  // watch from `resource_version`, report OnProgress() and OnWatchEnd()
  kSleep,  // wait for `delay`, then ask for the next step
};

struct WatcherAction {
  WatcherActionType type = WatcherActionType::kList;
  std::string continue_token;
  int page_items = 0;  // items per page of a list
  std::string resource_version;
  Duration delay{0};
};

// The rules of list and watch as a state machine without any I/O: Empty → Listing → Watching.
//  - A failed list starts over; its pages so far are void (IsFirstPage() says so).
//  - A page that is longer than we read (RESOURCE_EXHAUSTED, and no answer of the server such as
//    429): the same page again at once, with an eighth of the items; one item is never too long by
//    the server's own limit of 1.5 MiB, so that no tenant can end a list with many large objects.
//    Every page that arrives doubles their number again.
//  - OUT_OF_RANGE (410): list again, at once when nothing failed in the last 120 s.
//  - A watch that ended in order or broke off goes on from the last version seen.
//  - INVALID_ARGUMENT out of a watch: we cannot read what was said, so list again, with backoff.
//  - A watch that ends at once, in order but without a word, counts as a failure.
//  - Backoff after failures 0.8 s × 2 up to 30 s, reset after 120 s without failure.
// Not thread-safe.
class Watcher {
 public:
  explicit Watcher(BackoffPolicy backoff = {.first = Duration(800),
                                            .most = Duration(30'000),
                                            .factor = 2.0,
                                            .jitter = 0.5},
                   int page_items = 500);

  // What to do now. `random` in [0, 1).
  WatcherAction Next(MonoTime now, double random);

  // A page arrived; `continue_token` empty: it was the last. True: the list is complete now.
  bool OnPage(std::string continue_token, std::string resource_version);
  // True when the page that was asked for last begins a new list.
  bool IsFirstPage() const { return continue_token_.empty(); }
  void OnListFailure(const absl::Status& status, MonoTime now);
  // An event or bookmark carried this version.
  void OnProgress(std::string resource_version);
  void OnWatchEnd(const absl::Status& status, MonoTime now);

 private:
  enum class State { kEmpty, kListing, kWatching };
  bool FailedLately(MonoTime now) const;
  void NoteFailure(MonoTime now);
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
  bool heard_ = false;  // anything on the running watch
};

}  // namespace cachewarm::kube
