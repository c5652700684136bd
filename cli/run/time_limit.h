// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "lib/base/clock.h"

namespace cachewarm::cli {

// Number of threads that RunWithin() no longer waits for. If it is not 0, the process must end with
// std::_Exit(): destructors would free memory that these threads use.
inline std::atomic<int>& AbandonedThreads() {
  static std::atomic<int> count = 0;
  return count;
}

// Calls `work` on a thread of its own and returns its result, or nullopt if it has not returned
// within `limit`. Requests a stop of `work` shortly before the limit, and at once if `stop` is
// requested. After nullopt the thread continues, for example inside a system call on a file system
// that does not answer, so `work` must own everything that it uses.
template <typename T>
std::optional<T> RunWithin(const Clock& clock, Duration limit, const std::stop_token& stop,
                           std::function<T(std::stop_token)> work) {
  struct State {
    std::mutex mutex;
    std::condition_variable_any done;
    std::optional<T> result;
    std::stop_source stop;
  };
  const auto state = std::make_shared<State>();
  std::thread thread([state, work = std::move(work)] {
    T result = work(state->stop.get_token());
    const std::lock_guard lock(state->mutex);
    state->result = std::move(result);
    state->done.notify_all();
  });
  const Duration grace = std::min(limit / 4, Duration(1500));
  const MonoTime begin = clock.Monotonic();
  MonoTime end = begin + limit;
  std::unique_lock lock(state->mutex);
  while (!state->result.has_value() && clock.Monotonic() < end - grace && !stop.stop_requested()) {
    clock.WaitUntil(lock, state->done, end - grace, stop);
  }
  if (!state->result.has_value()) {
    state->stop.request_stop();
    end = std::min(end, clock.Monotonic() + grace);
    while (!state->result.has_value() && clock.Monotonic() < end) {
      clock.WaitUntil(lock, state->done, end, {});
    }
  }
  std::optional<T> result = std::move(state->result);
  lock.unlock();
  if (result.has_value()) {
    thread.join();
  } else {
    ++AbandonedThreads();
    thread.detach();
  }
  return result;
}

}  // namespace cachewarm::cli
