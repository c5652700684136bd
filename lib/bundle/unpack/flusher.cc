// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/unpack/flusher.h"

#include <utility>

#include "lib/base/status.h"

namespace cachewarm::bundle {
namespace {

// Number of written bytes after which the next sync starts. Trees below this size need only the
// final sync.
constexpr int64_t kSyncBytes = 96LL << 20;

}  // namespace

Flusher::Flusher(const fs::Dir& dir) : dir_(dir) {}

Flusher::~Flusher() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
}

void Flusher::RecordWritten(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  unsynced_bytes_ += bytes;
  if (unsynced_bytes_ < kSyncBytes || closing_) {
    return;
  }
  if (!thread_.joinable()) {
    thread_ = std::jthread([this] { Work(); });
  }
  changed_.notify_all();
}

void Flusher::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || unsynced_bytes_ >= kSyncBytes; });
    if (closing_) {
      return;
    }
    unsynced_bytes_ = 0;
    lock.unlock();
    absl::Status synced = dir_.SyncFileSystem();
    lock.lock();
    // Keep the first error: the kernel reports a write error only once.
    if (status_.ok()) {
      status_ = std::move(synced);
    }
  }
}

absl::Status Flusher::Finish() {
  std::jthread thread;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    thread = std::move(thread_);
  }
  changed_.notify_all();
  if (thread.joinable()) {
    thread.join();
  }
  return status_;
}

}  // namespace cachewarm::bundle
