// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/policy.h"

#include <string>

#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/request.h"
#include "lib/kube/core/resource.h"

namespace cachewarm::cli {
namespace {

constexpr Duration kBetweenSweeps = std::chrono::seconds(2);
constexpr Duration kTimeout = std::chrono::minutes(2);
constexpr int kQuietSweeps = 2;

absl::Status RemovePolicy(kube::Client& client, std::stop_token stop) {
  for (const kube::Resource& resource : {kube::kMutatingPolicyBindings, kube::kMutatingWebhooks}) {
    const auto answer =
        client.Do(kube::Delete(resource, {.ns = "", .name = std::string(api::kGroup)}, {}), stop);
    // NOT_FOUND is OK: the server does not support the resource, or it was deleted before.
    if (!answer.ok() && !absl::IsNotFound(answer.status())) {
      return Annotate(answer.status(), "--remove-policy");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RemovePolicyAndRelease(const ReleaseDependencies& dependencies,
                                    const ReleaseRequest& request, std::stop_token stop) {
  CW_RETURN_IF_ERROR(RemovePolicy(dependencies.client, stop));
  const MonoTime end = dependencies.clock.Monotonic() + kTimeout;
  for (int quiet = 0; quiet < kQuietSweeps;) {
    bool found = false;
    CW_RETURN_IF_ERROR(ReleaseHeld({.client = dependencies.client,
                                    .clock = dependencies.clock,
                                    .on_outcome =
                                        [&](const ReleaseOutcome& outcome) {
                                          found = true;
                                          dependencies.on_outcome(outcome);
                                        }},
                                   request, stop));
    quiet = found ? 0 : quiet + 1;
    if (dependencies.clock.Monotonic() >= end) {
      return absl::DeadlineExceededError(
          "new pods are still held two minutes after the policy was deleted; check whether another "
          "process installs the policy again");
    }
    if (!SleepFor(dependencies.clock, kBetweenSweeps, stop)) {
      return absl::CancelledError("interrupted");
    }
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::cli
