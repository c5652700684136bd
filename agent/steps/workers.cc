// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/workers.h"

#include <utility>

namespace cachewarm::agent {

Workers::Workers(int threads, size_t queue_max)
    : threads_max_(static_cast<size_t>(threads)), queue_max_(queue_max) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this](std::stop_token stop) { Run(std::move(stop)); });
  }
}

Workers::~Workers() {
  Stop();
}

bool Workers::Post(Job job) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || queue_.size() >= queue_max_) {
      return false;
    }
    queue_.push_back(std::move(job));
  }
  wake_.notify_one();
  return true;
}

void Workers::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    queue_.clear();
  }
  for (std::jthread& thread : threads_) {
    thread.request_stop();
  }
  threads_.clear();
}

void Workers::Run(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return !queue_.empty(); })) {
    const Job job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    job(stop);
    lock.lock();
  }
}

}  // namespace cachewarm::agent
