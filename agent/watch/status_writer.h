// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "lib/api/node_cache.h"
#include "lib/kube/runtime/reflector.h"

namespace cachewarm::agent {

struct StatusWriterOptions {
  std::string node_name;
  // Delay from the first change to the write, so that several changes are written together.
  Duration coalesce{1'000};
  // Time after which an unchanged status is written again. Up to a fifth is added at random, so
  // that nodes do not write at the same time.
  Duration heartbeat{300'000};
  Duration retry_first{1'000};
  Duration retry_most{60'000};
};

// Writes the status of the NodeCache of this node by server-side apply, when the status changed or
// a heartbeat is due. Call Run() on its own thread; the other methods are thread-safe.
class StatusWriter {
 public:
  StatusWriter(const kube::Runtime& runtime, StatusWriterOptions options);

  // Sets the current status of the NodeCache with the uid `target`; the write fills in its
  // `heartbeat`. A new uid means that the NodeCache was recreated, so its status is written again.
  // Nothing is written while `target` is empty.
  void Set(const std::string& target, api::NodeCacheStatus status);

  void Run(std::stop_token stop);
  // Returns true after the first successful write.
  bool HasWritten() const;

 private:
  MonoTime NextWrite() const;
  void WaitForWork(std::unique_lock<std::mutex>& lock, std::stop_token stop);
  void Write(api::NodeCacheStatus status, const std::string& target, std::stop_token stop);

  kube::Runtime runtime_;
  const StatusWriterOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::string target_;
  std::optional<api::NodeCacheStatus> wanted_;
  std::optional<api::NodeCacheStatus> written_;
  std::optional<MonoTime> changed_since_;
  MonoTime heartbeat_due_{};
  MonoTime not_before_{};
  int failures_ = 0;
  bool has_written_ = false;
};

}  // namespace cachewarm::agent
