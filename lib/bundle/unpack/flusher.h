// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "lib/fs/dir.h"

namespace cachewarm::bundle {

// Has the kernel write to the disk while the processors are busy with the next files: the syncfs at
// the end then waits for a little only. Thread-safe.
class Flusher {
 public:
  // `dir` must outlive it.
  explicit Flusher(const fs::Dir& dir);
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;
  // Waits for a sync that has begun.
  ~Flusher();

  // So many more bytes were written. Never waits.
  void RecordWritten(int64_t bytes);
  // Waits likewise; the error of whatever failed to get there, which a later syncfs need not tell.
  // Once, after the last RecordWritten().
  absl::Status Finish();

 private:
  void Work();

  const fs::Dir& dir_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t unsynced_bytes_ = 0;
  bool closing_ = false;
  absl::Status status_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace cachewarm::bundle
