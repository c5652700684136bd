// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "lib/fs/dir.h"

namespace cachewarm::bundle {

// Syncs the file system in the background while more files are written, so that the final syncfs is
// short. Thread-safe.
class Flusher {
 public:
  // `dir` must outlive this object.
  explicit Flusher(const fs::Dir& dir);
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;
  // Waits for a running sync.
  ~Flusher();

  // Counts bytes that were written, and starts a sync if enough were written since the last sync
  // began. Never blocks on I/O.
  void RecordWritten(int64_t bytes);
  // Waits for a running sync and returns the first error of all syncs so far, because a later
  // syncfs may not report it again. Call once, after the last RecordWritten().
  absl::Status Finish();

 private:
  void Work();

  const fs::Dir& dir_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t unsynced_bytes_ = 0;
  bool closing_ = false;
  absl::Status status_;
  std::jthread thread_;  // declared last: it uses the other members
};

}  // namespace cachewarm::bundle
