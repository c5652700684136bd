// SPDX-License-Identifier: Apache-2.0
#include "operator/dry_run/dry_runs.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/api/accelerators.h"
#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/error.h"
#include "lib/kube/runtime/stop_after.h"

namespace cachewarm::dry_run {
namespace {

// Substrings of error messages that are caused by the cluster's state or the operator's
// permissions, not by the pod. Sources: apiserver pkg/admission, plugin/pkg/admission/resourcequota
// and authorizer.
constexpr std::array<std::string_view, 6> kInconclusive = {
    "exceeded quota",         "does not support dry run", "failed calling webhook",
    "cannot create resource", "is being terminated",      "only with dryRun"};

// Sends the request once, and ends it after kDryRunLimit.
absl::StatusOr<codec::Json> DryRunCreate(kube::Client& client, const Clock& clock,
                                         const codec::Json& pod, std::stop_token stop) {
  kube::Request request = kube::Create(
      kube::kPods, pod, {.field_manager = std::string(api::kOperatorManager), .dry_run = true});
  request.idempotent = false;
  const kube::StopAfter over(clock, kDryRunLimit, std::move(stop));
  return client.Do(request, over.token());
}

codec::Json Within(const std::string& ns, codec::Json pod) {
  pod["metadata"]["namespace"] = ns;
  return pod;
}

// Maximum length of an image; the CRDs and keys have the same limit.
constexpr size_t kImageBytesMax = 1024;

// Returns the requested container as it is in `pod`, the API server's answer; nullopt if the answer
// has no such container with a valid image.
std::optional<api::AdmittedContainer> ReadAdmitted(const model::DryRunRequest& request,
                                                   const codec::Json& pod) {
  const codec::Json* container =
      codec::Named(codec::ListAt(pod, {"spec", "containers"}), request.container);
  if (container == nullptr) {
    return std::nullopt;
  }
  std::string image = codec::TextAt(*container, {"image"});
  if (image.empty() || image.size() > kImageBytesMax) {
    return std::nullopt;
  }
  return api::AdmittedContainer{.revision = request.revision,
                                .image = std::move(image),
                                .devices = api::AcceleratorsOf(*container)};
}

}  // namespace

model::DryRunResult Classify(const absl::Status& status) {
  if (status.ok()) {
    return model::DryRunResult::kAllowed;
  }
  const std::string message = Message(status);
  const bool inconclusive =
      std::any_of(kInconclusive.begin(), kInconclusive.end(),
                  [&](std::string_view part) { return message.find(part) != std::string::npos; });
  const bool rejects_pod = absl::IsPermissionDenied(status) || absl::IsInvalidArgument(status);
  return rejects_pod && !inconclusive ? model::DryRunResult::kRefused
                                      : model::DryRunResult::kUnknown;
}

model::AdmissionDryRun DryRuns::Last(const std::string& warmup_uid) const {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(warmup_uid);
  return found == entries_.end() ? model::AdmissionDryRun{} : found->second.result;
}

model::AdmissionDryRun DryRuns::Run(const std::string& warmup_uid, const std::string& ns,
                                    const model::DryRunRequest& request, std::stop_token stop) {
  model::AdmissionDryRun result{.fingerprint = request.fingerprint};
  const absl::StatusOr<codec::Json> unmodified =
      DryRunCreate(client_, clock_, Within(ns, *request.unmodified), stop);
  result.unmodified = Classify(unmodified.status());
  if (unmodified.ok()) {
    result.admitted = ReadAdmitted(request, *unmodified);
  }
  if (result.unmodified != model::DryRunResult::kRefused) {
    const absl::Status injected =
        DryRunCreate(client_, clock_, Within(ns, *request.injected), stop).status();
    result.injected = Classify(injected);
    result.message = injected.ok() ? "" : Message(injected);
  }
  result.time = clock_.Now();
  std::lock_guard lock(mutex_);
  entries_[warmup_uid] = {request, result};
  return result;
}

std::optional<model::AdmissionDryRun> DryRuns::Rerun(const std::string& warmup_uid,
                                                     const std::string& ns, Duration interval,
                                                     std::stop_token stop) {
  model::DryRunRequest request;
  {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(warmup_uid);
    if (found == entries_.end() || clock_.Now() - found->second.result.time < interval) {
      return std::nullopt;
    }
    request = found->second.request;
  }
  return Run(warmup_uid, ns, request, stop);
}

void DryRuns::Forget(const std::string& warmup_uid) {
  std::lock_guard lock(mutex_);
  entries_.erase(warmup_uid);
}

}  // namespace cachewarm::dry_run
