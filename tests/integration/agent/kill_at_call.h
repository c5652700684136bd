// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>

namespace cachewarm::agent {

struct TracedRun {
  // Number of reached system calls that change the file system; each counts twice, before and
  // after.
  int points = 0;
  bool was_killed = false;  // false: `work` returned
  bool succeeded = false;   // the result of `work`
};

// Runs `work` in a forked process under ptrace(2) and kills it with SIGKILL at the `point`th point,
// counted from 0, immediately before or after a call that changes the file system. Calls of all
// threads count, in the order in which they occur, which differs between runs with several threads;
// without threads, even points are before a call and odd points after it. Earlier changes persist,
// as after any kill.
TracedRun KillAtPoint(const std::function<bool()>& work,
                      int point = std::numeric_limits<int>::max());

// A system call that a traced process is about to make.
struct CallEntry {
  pid_t process = 0;
  uint64_t number = 0;  // SYS_openat
  std::array<uint64_t, 6> arguments{};

  // Returns true for calls that may change the disk. An open counts if it may create a file.
  bool ChangesFiles() const;
};

// Runs `work` likewise, and fails every call for which `error_of` returns an errno, without
// executing it; 0 executes it. Simulates full, failing and remote file systems.
TracedRun FailCalls(const std::function<bool()>& work,
                    const std::function<int(const CallEntry&)>& error_of);

}  // namespace cachewarm::agent
