// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/clock.h"

namespace cachewarm::kube {

// Number of keys that may be processed at once.
struct Lanes {
  size_t usual = SIZE_MAX;  // keys of namespaces that are not slow
  size_t slow = SIZE_MAX;   // keys of all slow namespaces together
};

// The waiting and the processed keys of a WorkQueue by namespace, so that requests that hang in one
// namespace, for example behind a webhook, delay the keys of that namespace alone.
//
// A namespace is slow while a key is processed there for kSlowAfter or longer, and afterwards until
// a key takes less time there and succeeds, or until ten minutes have passed. A key that becomes
// slow leaves the usual lane at that moment. The slow lane is shared out equally among the slow
// namespaces that have keys; a single one gets at most three quarters of it, so that another one
// need not wait. Among the keys that may be processed, the oldest is first.
//
// The namespace of "ns/name" and of "kind/ns/name" is "ns". Keys without a namespace are one group.
// Pure; not thread-safe.
class NamespaceLanes {
 public:
  static constexpr Duration kSlowAfter{500};

  explicit NamespaceLanes(Lanes lanes) : lanes_(lanes) {}

  // Appends a waiting key. The key must neither wait nor be processed.
  void Add(const std::string& key);
  // Moves the oldest waiting key that may be processed to the processed ones and returns it.
  std::optional<std::string> Take(MonoTime now);
  // Removes a processed key. `ok` is false if it is to be tried again.
  void Done(const std::string& key, MonoTime now, bool ok);

  bool IsProcessed(const std::string& key) const { return began_.contains(key); }
  size_t waiting() const { return waiting_; }
  size_t processed() const { return began_.size(); }
  // Returns the next time at which Take() may return a key although none was added or done: a
  // processed key leaves the usual lane. nullopt if there is no such time.
  std::optional<MonoTime> NextChange() const;

 private:
  struct Group {
    std::deque<std::pair<uint64_t, std::string>> waiting;  // with their order of arrival
    size_t processed = 0;
    std::optional<MonoTime> slow_since;
  };
  using Groups = std::map<std::string, Group, std::less<>>;

  // Marks namespaces slow, and forgets those that are idle.
  void Update(MonoTime now);
  Groups::iterator Find(std::string_view key);

  const Lanes lanes_;
  Groups groups_;
  std::map<std::string, MonoTime> began_;  // processed key -> time of Take()
  size_t waiting_ = 0;
  uint64_t arrivals_ = 0;
};

}  // namespace cachewarm::kube
