// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <thread>
#include <vector>

namespace cachewarm {

// Calls `each` once for every index below `count`, on at most `width` threads including this one,
// and returns when all calls have returned. Starts no further call after `stop` was requested.
inline void FanOut(size_t count, size_t width, std::stop_token stop,
                   const std::function<void(size_t)>& each) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < count && !stop.stop_requested(); i = next++) {
      each(i);
    }
  };
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < width && i < count; ++i) {
    threads.emplace_back(work);
  }
  work();
}

}  // namespace cachewarm
