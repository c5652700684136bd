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

// Keeps slow pod patches of one namespace from delaying those of all others. Each patch takes 10 to
// 30 s while a webhook of the namespace does not answer, so a patch is cancelled after 3 s. A
// namespace becomes slow when a patch there fails after a second or more. It stays slow until a
// patch there takes less than a second, or until ten minutes after the last such failure. Only a
// few patches of slow namespaces run at the same time, with the time limit in SlowPatches instead
// of 3 s. Keeps its state in memory only. Thread-safe.
class SlowNamespaceLimiter {
 public:
  struct SlowPatches {
    size_t at_once;  // patches that may run at once in all slow namespaces together
    Duration limit;  // time after which a patch is cancelled
  };

  // `clock` must outlive the limiter.
  SlowNamespaceLimiter(const Clock& clock, SlowPatches slow) : clock_(clock), slow_(slow) {}

  // Calls `patch` and returns its result. `patch` must return soon after its token fires.
  // Errors: DEADLINE_EXCEEDED if the patch was cancelled; it may still have taken effect. ABORTED,
  // without calling `patch`, if too many patches of slow namespaces are running.
  using Patch = std::function<absl::Status(std::stop_token)>;
  absl::Status Run(const std::string& ns, std::stop_token stop, const Patch& patch);

 private:
  class Slot;

  void Record(const std::string& ns, Duration took, bool ok);

  const Clock& clock_;
  const SlowPatches slow_;
  std::mutex mutex_;
  size_t slow_in_flight_ = 0;
  std::map<std::string, MonoTime> slow_since_;  // namespace -> time of the last slow failure
};

}  // namespace cachewarm::gate
