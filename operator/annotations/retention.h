// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/codec/json_value.h"
#include "operator/annotations/next_step.h"

// Keeps the CacheWarmup of a deleted Job for the next Job of the same name. Pure.
namespace cachewarm::annotations {

// Time for which the CacheWarmup of a deleted Job is kept.
inline constexpr Duration kRetention = std::chrono::hours(7 * 24);
// Maximum number of CacheWarmups of deleted Jobs that are kept in a namespace. Those that expire
// first are deleted first, so that Jobs with generated names leave only this many behind.
inline constexpr size_t kRetainedMax = 16;

// Returns the name of the Job for which annotations created `warmup`; "" if the CacheWarmup was
// created for another kind or by a user, or if a Job owns it and it is deleted with that Job.
std::string JobOf(const codec::Json& warmup);

// Returns the time in kRemovalRequestedAtAnnotation. Returns nullopt if the annotation is missing,
// unreadable, or later than `now`: the operator did not write such a time.
std::optional<WallTime> RemovalRequestedTime(const codec::Json& warmup, WallTime now);

// Returns the time in kExpiresAtAnnotation; nullopt if the annotation is missing or unreadable.
std::optional<WallTime> ExpiryTime(const codec::Json& warmup);

// The CacheWarmup of another deleted Job of the namespace.
struct RetainedWarmup {
  std::string name;
  WallTime expires{};
};

// A Job that does not exist, and its CacheWarmup, at one moment.
struct RetentionRequest {
  WallTime now{};
  std::string job;
  // The CacheWarmup with the name that the Job's CacheWarmup has; null if none exists.
  const codec::Json* present = nullptr;
  std::vector<RetainedWarmup> others;
};

// Returns the next step. Sets the time of expiry first, and deletes the CacheWarmup at that time,
// or earlier if kRetainedMax others expire later. If the removal of the annotation was noticed
// while the Job existed, deletes the CacheWarmup kRemovalGrace after that. Changes only the
// CacheWarmup of the Job (JobOf).
NextStep FindRetentionStep(const RetentionRequest& request);

}  // namespace cachewarm::annotations
