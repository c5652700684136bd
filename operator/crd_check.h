// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/kube/client/client.h"

namespace cachewarm::op {

// All references must outlive the check.
struct CrdCheckDependencies {
  kube::Client& client;
  const Clock& clock;
  Log& log;
};

// Compares the CRDs of the API server with the fields of this release. Until the check has passed,
// the replica is not ready and does not join the election, so an upgrade whose CRDs are older stops
// while a replica of the earlier release leads.
class CrdCheck {
 public:
  explicit CrdCheck(CrdCheckDependencies deps) : deps_(deps) {}

  // Repeats the comparison until it passes or `stop` is requested, first after 1 s, later every
  // 10 s. The check also passes, with a warning, after the CRDs could not be read for a time:
  // 15 s if reading them is forbidden, 2 minutes for another error. After an older CRD was found,
  // only the former counts.
  void Run(std::stop_token stop);

  // Blocks until the check has passed; returns false after `stop`. Thread-safe.
  bool AwaitPassed(std::stop_token stop) const;
  // Returns why the check has not passed, with the remedy; "" once it has passed. Thread-safe.
  std::string Problem() const;

 private:
  // Returns the first difference of the CRDs, with the remedy; "" if there is none.
  absl::StatusOr<std::string> Compare(std::stop_token stop);
  // Returns whether the check passes with this result of Compare(), also because it gives up; logs
  // the latter.
  bool HasPassed(const absl::StatusOr<std::string>& problem);
  // Stores why the check has not passed, "" if it has; logs it if it differs from the last one.
  void Report(const std::string& problem);

  CrdCheckDependencies deps_;
  // Used only on Run()'s thread. Times of the first of the latest failed reads without an answer
  // in between; the first counts only reads that were forbidden one after the other.
  std::optional<MonoTime> forbidden_since_;
  std::optional<MonoTime> unread_since_;
  bool found_older_ = false;  // by the last comparison
  mutable std::mutex mutex_;
  mutable std::condition_variable_any wake_;
  std::string problem_ = "CustomResourceDefinitions not compared yet";  // "" once passed
};

}  // namespace cachewarm::op
