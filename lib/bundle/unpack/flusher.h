// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <stop_token>
#include <thread>

#include "lib/fs/fd.h"

namespace cachewarm::bundle {

// Starts the write-back of finished files on a thread of its own, so that a later sync of them is
// short. Nothing else on the file system is written back. Starting a write-back blocks while the
// disk is busy, hence the thread; files that it has no time for are skipped. Thread-safe.
class Flusher {
 public:
  Flusher() = default;
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;
  // Waits for the write-back of at most one file to be started.
  ~Flusher();

  // Queues the file. Never blocks on I/O.
  void Add(const fs::Fd& file);

 private:
  static constexpr size_t kQueueMax = 64;

  void Work(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<fs::Fd> queue_;
  std::jthread thread_;  // declared last: it uses the other members
};

}  // namespace cachewarm::bundle
