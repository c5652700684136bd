// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cli/console.h"
#include "cli/run/coverage.h"
#include "cli/run/schedule.h"
#include "cli/run/source.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/dir.h"

namespace cachewarm::cli {

// The store and the cache directory of one run. Shared, because a thread that hangs in the store
// may outlive the run.
struct RunContext {
  BundleSource source;
  fs::Dir dir;
  std::string path;          // of `dir`
  caches::CacheTable table;  // the caches that are fetched and published
};

struct BackgroundOptions {
  ReadyRules rules;
  std::string ready_url;  // empty: none
  TreeSnapshot before;    // the files before the command started
  Digest damaged;         // as PublishJob::damaged
};

// Publishes the cache directory while the command runs, on a thread with the lowest priority.
// Reports on standard error.
class BackgroundPublisher {
 public:
  // Starts the thread. `console` must live until the process ends.
  BackgroundPublisher(std::shared_ptr<const RunContext> context, BackgroundOptions options,
                      Console& console);
  ~BackgroundPublisher();  // call Stop() before
  BackgroundPublisher(const BackgroundPublisher&) = delete;
  BackgroundPublisher& operator=(const BackgroundPublisher&) = delete;

  // Records that a line of the output has matched --ready-log. Thread-safe.
  void LogMatched();
  // Ends the thread, at the latest after 2 s, and returns the files as of the last publication;
  // empty if there was none.
  TreeSnapshot Stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cachewarm::cli
