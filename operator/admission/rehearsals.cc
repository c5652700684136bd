// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/rehearsals.h"

#include <algorithm>
#include <array>

#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/error.h"

namespace cachewarm::admission {
namespace {

// Parts of refusals that are about the moment or about us, never about the pod
// (apiserver pkg/admission, plugin/pkg/admission/resourcequota, authorizer).
constexpr std::array<std::string_view, 6> kNeutral = {
    "exceeded quota",         "does not support dry run", "failed calling webhook",
    "cannot create resource", "is being terminated",      "only with dryRun"};

absl::Status CreateDry(kube::Client& client, const std::string& ns, codec::Json pod,
                       std::stop_token stop) {
  pod["metadata"]["namespace"] = ns;
  return client
      .Do(kube::Create(kube::kPods, pod,
                       {.field_manager = std::string(api::kOperatorManager), .dry_run = true}),
          stop)
      .status();
}

}  // namespace

plan::Answer Classify(const absl::Status& status) {
  if (status.ok()) {
    return plan::Answer::kAllowed;
  }
  const std::string message = Message(status);
  const bool neutral = std::any_of(kNeutral.begin(), kNeutral.end(), [&](std::string_view part) {
    return message.find(part) != std::string::npos;
  });
  const bool about_the_pod = absl::IsPermissionDenied(status) || absl::IsInvalidArgument(status);
  return about_the_pod && !neutral ? plan::Answer::kRefused : plan::Answer::kUnknown;
}

plan::Rehearsal Rehearsals::Last(const std::string& warmup_uid) const {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(warmup_uid);
  return found == entries_.end() ? plan::Rehearsal{} : found->second.verdict;
}

plan::Rehearsal Rehearsals::Rehearse(const std::string& warmup_uid, const std::string& ns,
                                     const plan::RehearsalWish& wish, std::stop_token stop) {
  plan::Rehearsal verdict{.fingerprint = wish.fingerprint};
  verdict.as_is = Classify(CreateDry(client_, ns, *wish.as_is, stop));
  if (verdict.as_is != plan::Answer::kRefused) {
    const absl::Status injected = CreateDry(client_, ns, *wish.injected, stop);
    verdict.injected = Classify(injected);
    verdict.message = injected.ok() ? "" : Message(injected);
  }
  verdict.time = clock_.Now();
  std::lock_guard lock(mutex_);
  entries_[warmup_uid] = {wish, verdict};
  return verdict;
}

std::optional<plan::Rehearsal> Rehearsals::Repeat(const std::string& warmup_uid,
                                                  const std::string& ns, Duration interval,
                                                  std::stop_token stop) {
  plan::RehearsalWish wish;
  {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(warmup_uid);
    if (found == entries_.end() || clock_.Now() - found->second.verdict.time < interval) {
      return std::nullopt;
    }
    wish = found->second.wish;
  }
  return Rehearse(warmup_uid, ns, wish, stop);
}

void Rehearsals::Forget(const std::string& warmup_uid) {
  std::lock_guard lock(mutex_);
  entries_.erase(warmup_uid);
}

}  // namespace cachewarm::admission
