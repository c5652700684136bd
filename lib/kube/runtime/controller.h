// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/kube/runtime/work_queue.h"

namespace cachewarm::kube {

// The result of one reconcile.
struct Outcome {
  std::optional<Duration> requeue_after;
};

// Reconciles one key. Level-triggered: reads current state, receives no event payload. Never called
// for the same key on two threads at once. Should return soon after `stop`.
using Reconcile = std::function<absl::StatusOr<Outcome>(const std::string& key, std::stop_token)>;

struct ControllerOptions {
  std::string name;  // name in logs and metrics
  int workers = 1;
  // Delay before a key with a permanent error is reconciled again.
  Duration terminal_retry{300'000};
  // Called after each reconcile with "success", "requeue", "retry" or "terminal"; may be empty.
  std::function<void(std::string_view result, Duration took)> on_reconcile;
};

// Worker threads that reconcile the keys of a queue. An error has this effect on its key:
//   ABORTED, UNAVAILABLE, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, INTERNAL, UNKNOWN, ...
//       retried with the key's backoff (5 ms, doubling)
//   RESOURCE_EXHAUSTED   retried after the time that the server asked for, at least 1 s
//   INVALID_ARGUMENT, FAILED_PRECONDITION, PERMISSION_DENIED, UNAUTHENTICATED, UNIMPLEMENTED
//       retried after terminal_retry, or as soon as a change adds the key to the queue
//   CANCELLED            counts as success
//   an exception         treated like UNIMPLEMENTED; other keys continue
// Writes one log line per failure.
class Controller {
 public:
  // All references must outlive the controller.
  Controller(WorkQueue& queue, const Clock& clock, Log& log, ControllerOptions options,
             Reconcile reconcile);

  // Runs until `stop` is requested, then waits until the worker threads have ended.
  void Run(std::stop_token stop);

 private:
  void Work(std::stop_token stop);
  std::string_view Settle(const std::string& key, const absl::StatusOr<Outcome>& outcome);

  WorkQueue& queue_;
  const Clock& clock_;
  Log& log_;
  ControllerOptions options_;
  Reconcile reconcile_;
};

}  // namespace cachewarm::kube
