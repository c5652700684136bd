// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/kube/client/client.h"

// Finds and releases held pods. Needs only get, list and patch on pods, so it works without the
// operator, CacheWarmups and their CRD.
namespace cachewarm::cli {

// Time after the deadline during which only the operator releases a pod, because only the operator
// knows on which node the pod should run.
inline constexpr Duration kOperatorGracePeriod = std::chrono::seconds(5);

struct ReleaseRequest {
  std::string ns;                  // empty: all namespaces
  std::vector<std::string> names;  // names of the pods; empty: every held pod
  // If set, releases only pods whose deadline passed at least kOperatorGracePeriod ago. The
  // deadline of a pod is the time in its held-until annotation; without that annotation it is the
  // creation time of the pod plus the value of this member.
  std::optional<Duration> past_deadline;
  bool dry_run = false;
  std::string_view reason;  // one of the reasons in lib/api/reasons.h
};

enum class ReleaseResult {
  kReleased,
  kWouldRelease,  // dry run
  kNotDue,        // excluded by `past_deadline`
  // Named by the caller but not held by cachewarm, or released by another process meanwhile.
  kNotHeld,
  kFailed,
};
std::string_view Name(ReleaseResult result);

struct ReleaseOutcome {
  std::string ns;
  std::string pod;
  std::string warmup;  // name of its CacheWarmup; empty if unknown
  Duration held{0};
  ReleaseResult result = ReleaseResult::kReleased;
  std::string message;  // error of kFailed
};

// Dependencies of a release. `on_outcome` is called once for every pod, never concurrently.
struct ReleaseDependencies {
  kube::Client& client;
  const Clock& clock;
  std::function<void(const ReleaseOutcome&)> on_outcome;
};

// Releases the held pods that `request` selects: several concurrently, from all namespaces in turn.
// If a patch takes longer than 3 s, releases the pods of its namespace last. A pod that cannot be
// released is reported as an outcome, not as an error. Errors: the API server's error if the pods
// cannot be listed; NOT_FOUND if a named pod does not exist.
absl::Status ReleaseHeld(const ReleaseDependencies& dependencies, const ReleaseRequest& request,
                         std::stop_token stop);

}  // namespace cachewarm::cli
