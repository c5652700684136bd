// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "lib/base/clock.h"

namespace cachewarm::gate {

// Bounds the time and the number of pod patches in namespaces whose webhooks do not answer. Each
// patch takes 10 to 30 s there, so a patch is cancelled after SlowPatches::usual. A namespace
// becomes slow when a patch there fails after a second or more. It stays slow until a patch there
// takes less than a second, or until ten minutes after the last such failure. Only a few patches of
// a slow namespace run at the same time, with a time limit of their own. Keeps its state in memory
// only. Thread-safe.
class SlowNamespaceLimiter {
 public:
  struct SlowPatches {
    size_t at_once;  // patches that may run at once in one slow namespace
    Duration limit;  // time after which a patch is cancelled in a slow namespace
    // Time after which a patch is cancelled in any other namespace. An API server answers within a
    // second, including the time of its webhooks, or within a few seconds under load. A longer
    // patch most likely waits for a webhook that does not answer.
    Duration usual{3'000};
  };

  // `clock` must outlive the limiter.
  SlowNamespaceLimiter(const Clock& clock, SlowPatches slow) : clock_(clock), slow_(slow) {}

  // Calls `patch` and returns its result. `patch` must return soon after its token fires.
  // Errors: DEADLINE_EXCEEDED if the patch was cancelled; it may still have taken effect. ABORTED,
  // without calling `patch`, if too many patches of this slow namespace are running.
  using Patch = std::function<absl::Status(std::stop_token)>;
  absl::Status Run(const std::string& ns, std::stop_token stop, const Patch& patch);

 private:
  class Slot;

  void Record(const std::string& ns, Duration took, bool ok);

  const Clock& clock_;
  const SlowPatches slow_;
  std::mutex mutex_;
  std::map<std::string, size_t> slow_in_flight_;  // by namespace
  std::map<std::string, MonoTime> slow_since_;    // namespace -> time of the last slow failure
};

}  // namespace cachewarm::gate
