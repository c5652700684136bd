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
  int page_items = 500;  // a page is in memory whole, as text: fewer where objects are large
  Duration longest_wait{30'000};  // between two tries while the server fails
  // Cuts an object down to what is read of it, before it is stored. managedFields are gone already.
  std::function<void(codec::Json&)> project;
  Store::IndexFunction index;
  std::shared_ptr<codec::PackTable> table;  // as Store's
};

// What the loops of a program share. Everything referenced must outlive them.
struct Runtime {
  Client& client;
  const Clock& clock;
  Random random;
  Log& log;
};

// Keeps a Store equal to what the server has: lists in pages, watches with bookmarks, lists again
// when the server forgot our place (410), with backoff from 0.8 s after failures. A relist turns
// into changes: objects that vanished meanwhile are reported as gone.
class Reflector {
 public:
  using Handler = std::function<void(const Change&)>;

  Reflector(const Runtime& runtime, ReflectorOptions options);

  // Before Run(). Called on Run()'s thread, after the store changed, in the order of the changes;
  // must not block. Unchanged objects of a relist are not reported.
  void OnChange(Handler handler);

  // Runs until `stop`; returns within 1 s of it.
  void Run(std::stop_token stop);

  // Only while Run() does not: reports every object as gone, so that the store is synced and empty,
  // and lets the next Run() begin with a list.
  void Forget();

  const Store& store() const { return store_; }
  const Resource& resource() const { return options_.resource; }

 private:
  void Obey(const WatcherAction& action, std::stop_token stop);
  void ListPage(const WatcherAction& action, std::stop_token stop);
  void WatchFrom(const WatcherAction& action, std::stop_token stop);
  void Trim(codec::Json& object) const;
  void Report(const CachedChange& change) const;
  void NoteFailure(const absl::Status& status, std::string_view doing) const;

  Runtime runtime_;
  ReflectorOptions options_;
  Store store_;
  Watcher watcher_;
  std::vector<CachedObjectPtr> listed_;  // pages of the list under way
  std::vector<Handler> handlers_;
};

// Blocks until every store has synced; false when `stop` came or `limit` passed first.
bool AwaitSynced(const std::vector<const Store*>& stores, const Clock& clock, Duration limit,
                 std::stop_token stop);

}  // namespace cachewarm::kube
