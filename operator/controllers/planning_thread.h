// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <utility>

namespace cachewarm::controllers {

// The one thread on which the plans of all workers are made. libc's allocator gives threads
// separate arenas and keeps freed memory in them. If each worker planned on its own thread, every
// arena would grow to the size of the largest plan (docs/design/0017-memory-of-the-operator.md).
// Thread-safe.
class PlanningThread {
 public:
  PlanningThread();
  // Waits for the thread. No call of Run() may be in progress.
  ~PlanningThread() = default;

  // Runs `work` on this thread, after all earlier calls, and returns its result. `work` must not
  // call Run().
  template <typename Work>
  std::invoke_result_t<Work> Run(Work work) {
    std::optional<std::invoke_result_t<Work>> result;
    Await(std::packaged_task<void()>([&] { result.emplace(work()); }));
    return *std::move(result);
  }

 private:
  void Await(std::packaged_task<void()> task);
  void RunTasks(std::stop_token stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::packaged_task<void()>> tasks_;
  std::jthread thread_;  // last, so that the other members outlive it
};

}  // namespace cachewarm::controllers
