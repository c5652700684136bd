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
  Duration coalesce{1'000};     // after the first change, for others to come along
  Duration heartbeat{300'000};  // at least; up to a fifth more, so that nodes spread
  Duration retry_first{1'000};
  Duration retry_most{60'000};
};

// Writes the status of our NodeCache by server-side apply, when it is news or a heartbeat is due.
// Run() on a thread of its own, everything else from any thread.
class StatusWriter {
 public:
  StatusWriter(const kube::Runtime& runtime, StatusWriterOptions options);

  // The status as it is now, of the NodeCache with this uid; `heartbeat` is filled in when it is
  // written. What was written to another object of our name counts no more. Empty: there is none,
  // so nothing is written.
  void Set(const std::string& target, api::NodeCacheStatus status);

  void Run(std::stop_token stop);
  // True once a status was written.
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
