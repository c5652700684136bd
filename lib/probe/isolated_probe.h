// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/fingerprint/node_facts.h"

namespace cachewarm::probe {

// Runs a query of the node's facts in a child process, so that a GPU driver that hangs, crashes or
// is replaced cannot affect this process. A thread would not suffice: a library that hangs while it
// is loaded blocks every later dlopen(3) of the process, a crash ends the process, and a library
// that stays loaded hides the next version of the driver. The child is a fork without exec: it
// closes all inherited files, which also drops inherited locks. Not thread-safe.
class IsolatedProbe {
 public:
  using Query = std::function<absl::StatusOr<fingerprint::NodeFacts>()>;

  // `query` runs in the child and must not use other threads of this process.
  IsolatedProbe(Query query, std::chrono::milliseconds deadline);
  // Kills a child that still runs.
  ~IsolatedProbe();
  IsolatedProbe(const IsolatedProbe&) = delete;
  IsolatedProbe& operator=(const IsolatedProbe&) = delete;

  // Returns the result of the query. UNAVAILABLE if it does not end before the deadline, if the
  // child ends abnormally, or while the child of an earlier call cannot be killed: a process that
  // hangs in a system call of the driver ends only when that call returns. CANCELLED on `stop`.
  absl::StatusOr<fingerprint::NodeFacts> Run(std::stop_token stop = {});

 private:
  // Returns true if no child process is left; collects a child that has ended.
  bool Reap();
  void Kill();

  Query query_;
  std::chrono::milliseconds deadline_;
  pid_t child_ = -1;
  int child_status_ = 0;  // exit status of the last child that ended, as from waitpid(2)
};

}  // namespace cachewarm::probe
