// SPDX-License-Identifier: Apache-2.0
#include "operator/dry_run/release_dry_runs.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/gate/client/release.h"
#include "lib/gate/core/held.h"
#include "lib/kube/runtime/stop_after.h"
#include "operator/dry_run/dry_runs.h"

namespace cachewarm::dry_run {
namespace {

using codec::Json;

// Time for which an answer is used. A rejection is confirmed before it expires. Policies change
// seldom, and the first rejected release is recorded anyway.
constexpr Duration kAllowedLasts = std::chrono::hours(1);
constexpr Duration kRefusedLasts = model::kReleaseRefusalLasts - std::chrono::minutes(1);
constexpr Duration kUnknownLasts = std::chrono::minutes(1);

Duration LastsFor(model::DryRunResult result) {
  switch (result) {
    case model::DryRunResult::kAllowed:
      return kAllowedLasts;
    case model::DryRunResult::kRefused:
      return kRefusedLasts;
    case model::DryRunResult::kUnknown:
      break;
  }
  return kUnknownLasts;
}

// Returns the release of a held pod without annotations, because a policy that rejects these does
// not prevent the release; for any other pod a patch that changes nothing.
absl::StatusOr<Json> PatchFor(const api::Pod& pod) {
  if (!gate::IsHeld(pod)) {
    return Json::array({{{"op", "test"}, {"path", "/metadata/uid"}, {"value", pod.meta.uid}}});
  }
  return gate::ReleasePatch({.pod = pod});
}

// Returns true if the API server still has this pod with the same gates. A pod that changed makes
// a "test" operation of the patch fail, which looks like a rejection.
bool IsUnchanged(kube::Client& client, const api::Pod& pod, std::stop_token stop) {
  const auto current =
      client.Do(kube::Get(kube::kPods, {.ns = pod.meta.ns, .name = pod.meta.name}), stop);
  if (!current.ok() || kube::UidOf(*current) != pod.meta.uid) {
    return false;
  }
  const Json& gates = codec::ListAt(*current, {"spec", "schedulingGates"});
  return std::equal(gates.begin(), gates.end(), pod.gates.begin(), pod.gates.end(),
                    [](const Json& gate, const std::string& name) {
                      return codec::TextAt(gate, {"name"}) == name;
                    });
}

absl::Status Send(const ReleaseDryRuns::Dependencies& deps, const api::Pod& pod,
                  std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const Json patch, PatchFor(pod));
  kube::Request request =
      kube::JsonPatch(kube::kPods, {.ns = pod.meta.ns, .name = pod.meta.name}, patch,
                      {.field_manager = std::string(api::kOperatorManager), .dry_run = true});
  request.idempotent = false;
  const kube::StopAfter over(deps.clock, kDryRunLimit, std::move(stop));
  absl::Status sent = deps.client.Do(request, over.token()).status();
  if (Classify(sent) == model::DryRunResult::kRefused &&
      !IsUnchanged(deps.client, pod, over.token())) {
    return absl::AbortedError("the pod changed meanwhile");
  }
  return sent;
}

}  // namespace

bool ReleaseDryRuns::IsDue(const api::Pod& pod) const {
  std::lock_guard lock(mutex_);
  return IsDueLocked(pod);
}

bool ReleaseDryRuns::IsDueLocked(const api::Pod& pod) const {
  const auto found = answers_.find(pod.meta.ns);
  if (found == answers_.end()) {
    return true;
  }
  const Answer& last = found->second;
  const bool is_first_held = gate::IsHeld(pod) && !last.was_held;
  return (is_first_held && last.result != model::DryRunResult::kRefused) ||
         deps_.clock.Now() - last.time >= LastsFor(last.result);
}

void ReleaseDryRuns::Run(const api::Pod& pod, std::stop_token stop) {
  const bool is_held = gate::IsHeld(pod);
  {
    std::lock_guard lock(mutex_);
    if (!IsDueLocked(pod)) {
      return;
    }
    const WallTime now = deps_.clock.Now();
    std::erase_if(answers_, [&](const auto& each) {
      return now - each.second.time >= LastsFor(each.second.result);
    });
    // Recorded before the request, so that other warmups of the namespace send none meanwhile.
    answers_[pod.meta.ns] = {.time = now, .was_held = is_held};
  }
  const absl::Status status = Send(deps_, pod, std::move(stop));
  const model::DryRunResult result = Classify(status);
  {
    std::lock_guard lock(mutex_);
    answers_[pod.meta.ns] = {.time = deps_.clock.Now(), .result = result, .was_held = is_held};
  }
  if (result == model::DryRunResult::kRefused) {
    deps_.refusals.Record(pod.meta.ns, Message(status));
  } else if (result == model::DryRunResult::kAllowed && is_held) {
    deps_.refusals.Forget(pod.meta.ns);
  }
}

std::optional<Duration> ReleaseDryRuns::ConfirmAfter(const std::string& ns) const {
  std::lock_guard lock(mutex_);
  const auto found = answers_.find(ns);
  if (found == answers_.end() || found->second.result != model::DryRunResult::kRefused) {
    return std::nullopt;
  }
  return std::max(found->second.time + kRefusedLasts - deps_.clock.Now(), Duration(0));
}

}  // namespace cachewarm::dry_run
