// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <thread>

#include "lib/base/clock.h"

namespace cachewarm::kube {

// A stop token of its own that fires after `limit`: for the few calls that must still be made while
// everything else is being stopped.
class StopAfter {
 public:
  StopAfter(const Clock& clock, Duration limit)
      : timer_([this, &clock, limit](std::stop_token ended) {
          if (SleepFor(clock, limit, ended)) {
            source_.request_stop();
          }
        }) {}

  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread timer_;  // ends first
};

}  // namespace cachewarm::kube
