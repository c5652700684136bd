// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
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
// moment, counted from 0, right before or right after a call that changes the file system. The
// calls of all its threads count, in the order in which they come, which is another one each time
// when there are several; without threads even points are before a call and odd ones after it.
// What the process had done by then stays done, as after a kill by anybody.
TracedRun KillAtPoint(const std::function<bool()>& work,
                      int point = std::numeric_limits<int>::max());

// A system call that a traced process is about to make.
struct CallEntry {
  pid_t process = 0;
  uint64_t number = 0;  // SYS_openat
  std::array<uint64_t, 6> arguments{};

  // Calls after which the disk may be another than before. An open counts when it may create.
  bool ChangesFiles() const;
};

// Runs `work` likewise, and has each call fail for which `error_of` says an errno; it is not made
// then. With 0 it is. What a disk or a file system does that is full, broken or unlike a local one.
TracedRun FailCalls(const std::function<bool()>& work,
                    const std::function<int(const CallEntry&)>& error_of);

}  // namespace cachewarm::agent
