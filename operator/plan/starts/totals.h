// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lib/api/cache_warmup.h"

// The totals in status.starts, from which operator/apply serves counters. Pure.
namespace cachewarm::plan {

// GPU type of the totals of starts on nodes whose type is not known.
inline constexpr std::string_view kUnknownGpuType = "unknown";
// GPU type of the totals of starts that would exceed api::kGpuTypeStartsMax types.
inline constexpr std::string_view kOtherGpuType = "other";

// Returns the totals of the GPU type. Adds them, with zeros, if the list does not have them: before
// the first start of the type, so that Prometheus sees a series at 0 and counts that start. The
// reference is valid until the next call.
api::GpuTypeStarts& TotalsOf(api::Starts& starts, std::string_view gpu_type);

// Adds the sample to the totals of all starts, and to those of its GPU type.
void AddToTotals(api::Starts& starts, const api::StartSample& sample);

// Rounds to milliseconds, so that floating-point noise does not change the status, and turns -0.0
// into 0, as the API server does: a value that is read back must compare equal.
double Rounded(double seconds);

}  // namespace cachewarm::plan
