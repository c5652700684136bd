// SPDX-License-Identifier: Apache-2.0
#include "operator/annotations/retention.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/codec/json_path.h"
#include "lib/kube/core/object.h"

namespace cachewarm::annotations {
namespace {

using codec::Json;

std::optional<WallTime> TimeIn(const Json& warmup, std::string_view annotation) {
  const auto time = ParseTime(codec::TextAt(warmup, {"metadata", "annotations", annotation}));
  return time.ok() ? std::optional(*time) : std::nullopt;
}

NextStep DeleteBecause(const RetentionRequest& request, std::string_view why) {
  return {.step = Step::kDelete,
          .events = {{.reason = api::reason::kWarmupDeleted,
                      .text = fmt::format("deleted the CacheWarmup of Job {}, which does not exist "
                                          "any more: {}",
                                          request.job, why)}}};
}

// True if at least kRetainedMax other CacheWarmups expire later. Of equal times, that with the
// greater name counts as later, so that exactly kRetainedMax are kept.
bool IsSurplus(const RetentionRequest& request, WallTime expires) {
  const std::string name = kube::NameOf(*request.present).name;
  const auto later =
      std::count_if(request.others.begin(), request.others.end(), [&](const RetainedWarmup& other) {
        return std::tie(other.expires, other.name) > std::tie(expires, name);
      });
  return static_cast<size_t>(later) >= kRetainedMax;
}

NextStep SetExpiry(const RetentionRequest& request) {
  const std::string expires = FormatTime(request.now + kRetention);
  return {.step = Step::kPatch,
          .object = {{"metadata",
                      {{"resourceVersion", kube::ResourceVersionOf(*request.present)},
                       {"annotations", {{std::string(api::kExpiresAtAnnotation), expires}}}}}},
          .requeue_after = kRetention};
}

}  // namespace

std::string JobOf(const Json& warmup) {
  const kube::Owner owner = kube::ControllerOf(warmup);
  const bool outlives_job =
      owner.kind == "Namespace" && owner.name == kube::NameOf(warmup).ns &&
      codec::TextAt(warmup, {"spec", "workloadRef", "kind"}) == "Job" &&
      !codec::TextAt(warmup, {"metadata", "annotations", api::kRequestedSpecAnnotation}).empty();
  return outlives_job ? codec::TextAt(warmup, {"spec", "workloadRef", "name"}) : "";
}

std::optional<WallTime> RemovalRequestedTime(const Json& warmup, WallTime now) {
  const auto time = TimeIn(warmup, api::kRemovalRequestedAtAnnotation);
  return time.has_value() && *time <= now ? time : std::nullopt;
}

std::optional<WallTime> ExpiryTime(const Json& warmup) {
  return TimeIn(warmup, api::kExpiresAtAnnotation);
}

NextStep FindRetentionStep(const RetentionRequest& request) {
  if (request.present == nullptr || request.job.empty() || JobOf(*request.present) != request.job ||
      kube::IsDeleting(*request.present)) {
    return {};
  }
  if (const auto removal = RemovalRequestedTime(*request.present, request.now)) {
    const WallTime due = *removal + kRemovalGrace;
    return request.now < due ? NextStep{.requeue_after = due - request.now}
                             : DeleteBecause(request, "no annotation requests it");
  }
  const auto expires = ExpiryTime(*request.present);
  if (!expires.has_value() || *expires > request.now + kRetention) {
    return SetExpiry(request);
  }
  if (*expires <= request.now) {
    return DeleteBecause(request, "no Job of this name was created within 7 days");
  }
  if (IsSurplus(request, *expires)) {
    return DeleteBecause(request, fmt::format("the namespace has {} CacheWarmups of Jobs that were "
                                              "deleted later, the maximum that is kept",
                                              kRetainedMax));
  }
  return {.requeue_after = *expires - request.now};
}

}  // namespace cachewarm::annotations
