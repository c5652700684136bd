// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/random.h"
#include "lib/kube/client/client.h"
#include "lib/kube/core/resource.h"
#include "lib/kube/core/watcher.h"
#include "lib/kube/runtime/store.h"

namespace cachewarm::kube {

struct ReflectorOptions {
  Resource resource;
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  int page_items = 500;          // a whole page is in memory as text: use fewer for large objects
  Duration backoff_max{30'000};  // longest delay between attempts while the server fails
  // Called for each object before it is stored: removes members that are not needed. managedFields
  // are already removed.
  std::function<void(codec::Json&)> project;
  Store::IndexFunction index;
  std::shared_ptr<codec::PackTable> table;  // passed to the Store
};

// Dependencies shared by the loops of a program. All references must outlive the loops.
struct Runtime {
  Client& client;
  const Clock& clock;
  Random random;
  Log& log;
};

// Keeps a Store equal to the server's state: paged lists, watches with bookmarks, a new list after
// 410, backoff from 0.8 s after failures. Compares a new list with the store and reports only
// changes: objects that disappeared are reported as deleted.
class Reflector {
 public:
  using Handler = std::function<void(const Change&)>;

  Reflector(const Runtime& runtime, ReflectorOptions options);

  // Adds a handler; call before Run(). The handler is called on the thread of Run() after the store
  // changed, in the order of the changes, and must not block. After a new list, unchanged objects
  // are not reported.
  void OnChange(Handler handler);

  // Runs until `stop` is requested; returns within 1 s of that.
  void Run(std::stop_token stop);

  // Removes every object from the store and reports it as deleted; the store counts as synced. The
  // next Run() starts with a list. Call only while Run() does not run.
  void Forget();

  const Store& store() const { return store_; }
  const Resource& resource() const { return options_.resource; }

 private:
  void Execute(const WatcherAction& action, std::stop_token stop);
  void ListPage(const WatcherAction& action, std::stop_token stop);
  void WatchFrom(const WatcherAction& action, std::stop_token stop);
  void Trim(codec::Json& object) const;
  void Report(const CachedChange& change) const;
  void LogFailure(const absl::Status& status, std::string_view doing) const;

  Runtime runtime_;
  ReflectorOptions options_;
  Store store_;
  Watcher watcher_;
  std::vector<CachedObjectPtr> listed_;  // objects of the current list, received so far
  std::vector<Handler> handlers_;
};

// Blocks until every store has synced; returns false after `stop` or `limit`.
bool AwaitSynced(const std::vector<const Store*>& stores, const Clock& clock, Duration limit,
                 std::stop_token stop);

}  // namespace cachewarm::kube
