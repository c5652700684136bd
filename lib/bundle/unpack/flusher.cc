// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/unpack/flusher.h"

#include <fcntl.h>

#include <utility>

#include "lib/fs/file.h"

namespace cachewarm::bundle {

Flusher::~Flusher() {
  thread_.request_stop();
}

void Flusher::Add(const fs::Fd& file) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() == kQueueMax) {
      return;
    }
    fs::Fd copy(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy.ok()) {
      return;
    }
    queue_.push_back(std::move(copy));
    if (!thread_.joinable()) {
      thread_ = std::jthread([this](const std::stop_token& stop) { Work(stop); });
    }
  }
  changed_.notify_one();
}

void Flusher::Work(const std::stop_token& stop) {
  constexpr int64_t kToTheEnd = 0;
  while (true) {
    fs::Fd file;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !queue_.empty(); }) || stop.stop_requested()) {
        return;
      }
      file = std::move(queue_.front());
      queue_.pop_front();
    }
    fs::BeginSync(file, 0, kToTheEnd);
  }
}

}  // namespace cachewarm::bundle
