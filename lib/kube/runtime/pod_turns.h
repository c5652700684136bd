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

namespace cachewarm::kube {

// Keeps patches of the pods of one namespace from stalling those of all others: behind a webhook of
// a user's that does not answer each takes 10 to 30 s. A patch is cut short after 3 s. A namespace
// where one failed in a second or more is slow, until one is answered faster or ten minutes have
// passed; few patches of slow namespaces are under way at once, and those may take longer. Memory
// only. Thread-safe.
class PodTurns {
 public:
  struct SlowTurns {
    size_t at_once;  // of all slow namespaces together
    Duration limit;  // then it is cut short
  };

  // `clock` must outlive it.
  PodTurns(const Clock& clock, SlowTurns slow) : clock_(clock), slow_(slow) {}

  // What `patch` gives, which has to end soon after its token. DEADLINE_EXCEEDED when it was cut
  // short: nobody knows then whether it was carried out. ABORTED, without a call, when it is not
  // the turn of a slow namespace.
  using Patch = std::function<absl::Status(std::stop_token)>;
  absl::Status Take(const std::string& ns, std::stop_token stop, const Patch& patch);

 private:
  class Turn;

  void Learn(const std::string& ns, Duration took, bool ok);

  const Clock& clock_;
  const SlowTurns slow_;
  std::mutex mutex_;
  size_t slow_under_way_ = 0;
  std::map<std::string, MonoTime> slow_since_;  // by namespace: when a patch failed slowly last
};

}  // namespace cachewarm::kube
