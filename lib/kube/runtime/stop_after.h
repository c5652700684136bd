// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <thread>
#include <utility>

#include "lib/base/clock.h"

namespace cachewarm::kube {

// A stop token of its own that fires after `limit`, or with `outer`: for calls that may not take
// longer. Without an `outer`, for the few that must still be made while everything else is being
// stopped.
class StopAfter {
 public:
  StopAfter(const Clock& clock, Duration limit, std::stop_token outer = {})
      : timer_([this, &clock, limit](std::stop_token ended) {
          if (SleepFor(clock, limit, ended)) {
            source_.request_stop();
          }
        }),
        outer_(std::move(outer), [this] { source_.request_stop(); }) {}

  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread timer_;
  std::stop_callback<std::function<void()>> outer_;  // ends first
};

}  // namespace cachewarm::kube
