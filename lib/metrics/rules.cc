// SPDX-License-Identifier: Apache-2.0
#include "lib/metrics/rules.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace cachewarm::metrics {
namespace {

constexpr std::string_view kPrefix = "cachewarm_";
constexpr size_t kLabelsMax = 8;
constexpr size_t kBucketsMax = 64;

absl::Status Bad(const MetricSpec& spec, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("metric {}: {}", spec.name, problem));
}

bool IsSnake(std::string_view text) {
  return !text.empty() && text.front() >= 'a' && text.front() <= 'z' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

absl::Status CheckEnding(MetricType type, const MetricSpec& spec) {
  const bool total = spec.name.ends_with("_total");
  if (type == MetricType::kCounter && !total) {
    return Bad(spec, "the name of a counter must end with _total");
  }
  if (type != MetricType::kCounter && total) {
    return Bad(spec, "only the name of a counter may end with _total");
  }
  if (type == MetricType::kHistogram && !spec.name.ends_with("_seconds") &&
      !spec.name.ends_with("_bytes")) {
    return Bad(spec, "the name of a histogram must end with _seconds or _bytes");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSpec(MetricType type, const MetricSpec& spec) {
  if (!spec.name.starts_with(kPrefix) || !IsSnake(spec.name)) {
    return Bad(spec, "the name must start with cachewarm_ and have only a-z, 0-9 and _");
  }
  CW_RETURN_IF_ERROR(CheckEnding(type, spec));
  if (spec.help.empty()) {
    return Bad(spec, "help is required");
  }
  if (spec.labels.size() > kLabelsMax) {
    return Bad(spec, fmt::format("has more than {} labels", kLabelsMax));
  }
  std::set<std::string> seen;
  for (const std::string& label : spec.labels) {
    if (!IsSnake(label) || label == "le" || !seen.insert(label).second) {
      return Bad(spec, fmt::format("label \"{}\" is malformed, reserved or a duplicate", label));
    }
  }
  return spec.series_max == 0 ? Bad(spec, "series_max must be at least 1") : absl::OkStatus();
}

absl::Status CheckBuckets(const MetricSpec& spec, const std::vector<double>& buckets) {
  const bool finite = std::all_of(buckets.begin(), buckets.end(),
                                  [](double bound) { return std::isfinite(bound); });
  const bool ascending =
      std::adjacent_find(buckets.begin(), buckets.end(), std::greater_equal<>()) == buckets.end();
  return buckets.empty() || buckets.size() > kBucketsMax || !finite || !ascending
             ? Bad(spec,
                   fmt::format("expected 1 to {} finite, ascending bucket bounds", kBucketsMax))
             : absl::OkStatus();
}

}  // namespace cachewarm::metrics
