// SPDX-License-Identifier: Apache-2.0
#include "operator/crd_check.h"

#include <utility>

#include "fmt/format.h"
#include "lib/api/crd_fields.h"
#include "lib/api/names.h"
#include "lib/base/backoff.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/request.h"

namespace cachewarm::op {
namespace {

constexpr BackoffPolicy kRecheck{
    .first = Duration(1'000), .most = Duration(10'000), .factor = 2.0, .jitter = 0.0};
// Maximum time for which a forbidden read delays the replica. A role that is applied with the
// upgrade may take effect a moment after the new pod starts; a role from before the upgrade lacks
// the right for good. Not longer than the Lease lasts.
constexpr Duration kForbiddenMost{15'000};
// The same for every other error. Longer, because a replica can neither lead nor sync its stores
// while the API server does not respond.
constexpr Duration kUnreadMost{120'000};

constexpr std::string_view kRemedy =
    "run kubectl apply --server-side -f crds/ with the files of this release";

}  // namespace

void CrdCheck::Run(std::stop_token stop) {
  for (int attempt = 0; !stop.stop_requested(); ++attempt) {
    const absl::StatusOr<std::string> problem = Compare(stop);
    if (stop.stop_requested()) {
      return;
    }
    if (HasPassed(problem)) {
      Report("");
      return;
    }
    Report(problem.ok() ? *problem
                        : fmt::format("cannot read the CustomResourceDefinitions of cachewarm: {}",
                                      Message(problem.status())));
    SleepFor(deps_.clock, BackoffDelay(kRecheck, attempt, 0.0), stop);
  }
}

bool CrdCheck::HasPassed(const absl::StatusOr<std::string>& problem) {
  if (problem.ok()) {
    forbidden_since_.reset();
    unread_since_.reset();
    found_older_ = !problem->empty();
    return !found_older_;
  }
  const MonoTime now = deps_.clock.Monotonic();
  unread_since_ = unread_since_.value_or(now);
  if (absl::IsPermissionDenied(problem.status())) {
    forbidden_since_ = forbidden_since_.value_or(now);
  } else {
    forbidden_since_.reset();
  }
  const bool gives_up =
      (forbidden_since_.has_value() && now - *forbidden_since_ >= kForbiddenMost) ||
      (!found_older_ && now - *unread_since_ >= kUnreadMost);
  if (gives_up) {
    deps_.log.Warning(
        "CustomResourceDefinitions not compared; if they are older than this operator, its writes "
        "fail until they are updated",
        {{"err", Message(problem.status())}});
  }
  return gives_up;
}

absl::StatusOr<std::string> CrdCheck::Compare(std::stop_token stop) {
  for (const std::string_view name : {api::kWarmupCrd, api::kNodeCacheCrd}) {
    const auto crd = deps_.client.Do(
        kube::Get(kube::kCustomResourceDefinitions, {.ns = "", .name = std::string(name)}), stop);
    if (absl::IsNotFound(crd.status())) {
      return fmt::format("CustomResourceDefinition {} does not exist; {}", name, kRemedy);
    }
    CW_RETURN_IF_ERROR(crd.status());
    if (const std::string missing = api::FirstMissingField(name, *crd); !missing.empty()) {
      return fmt::format(
          "CustomResourceDefinition {} is older than this operator: version {} has no field {}; {}",
          name, api::kVersion, missing, kRemedy);
    }
  }
  return std::string();
}

bool CrdCheck::AwaitPassed(std::stop_token stop) const {
  std::unique_lock lock(mutex_);
  return wake_.wait(lock, std::move(stop), [this] { return problem_.empty(); });
}

std::string CrdCheck::Problem() const {
  std::lock_guard lock(mutex_);
  return problem_;
}

void CrdCheck::Report(const std::string& problem) {
  {
    std::lock_guard lock(mutex_);
    if (problem == problem_) {
      return;
    }
    problem_ = problem;
    wake_.notify_all();
  }
  if (!problem.empty()) {
    deps_.log.Warning("not ready and not competing for the Lease", {{"err", problem}});
  }
}

}  // namespace cachewarm::op
