// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <limits>

namespace cachewarm::agent {

struct TracedRun {
  // System calls that change the file system and were reached; each counts twice, before and after.
  int points = 0;
  bool was_killed = false;  // else `work` ran to its end
  bool succeeded = false;   // what `work` returned
};

// Runs `work` in a forked process under ptrace(2) and kills it with SIGKILL at the `point`th
// moment, counted from 0, right before or right after a call that changes the file system: even
// points are before, odd ones after. `work` must not start threads. What the process had done by
// then stays done, as after a kill by anybody.
TracedRun KillAtPoint(const std::function<bool()>& work,
                      int point = std::numeric_limits<int>::max());

}  // namespace cachewarm::agent
