// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/planning_thread.h"

namespace cachewarm::controllers {

PlanningThread::PlanningThread()
    : thread_([this](std::stop_token stop) { RunTasks(std::move(stop)); }) {}

void PlanningThread::Await(std::packaged_task<void()> task) {
  std::future<void> ended = task.get_future();
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
  ended.get();
}

void PlanningThread::RunTasks(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return !tasks_.empty(); })) {
    std::packaged_task<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace cachewarm::controllers
