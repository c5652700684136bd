// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <thread>
#include <utility>

#include "lib/base/clock.h"

namespace cachewarm::kube {

// A stop token that bounds a call: it fires after `limit`, or as soon as `outer` fires. Calls that
// must still be made during shutdown pass no `outer`.
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
  std::stop_callback<std::function<void()>> outer_;  // destroyed first, because it uses source_
};

}  // namespace cachewarm::kube
