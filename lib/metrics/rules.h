// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lib/metrics/metrics.h"

// For use inside lib/metrics only.
namespace cachewarm::metrics {

enum class MetricType { kCounter, kGauge, kHistogram };

// Returns OK, or INVALID_ARGUMENT naming the metric and the rule of MetricSpec that it breaks.
absl::Status CheckSpec(MetricType type, const MetricSpec& spec);
// INVALID_ARGUMENT unless `buckets` are 1 to 64 finite, ascending bounds.
absl::Status CheckBuckets(const MetricSpec& spec, const std::vector<double>& buckets);

}  // namespace cachewarm::metrics
