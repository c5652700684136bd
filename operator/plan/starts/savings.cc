// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/starts/savings.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/plan/starts/totals.h"

namespace cachewarm::plan {

using api::StartResult;
using api::StartSample;

namespace {

constexpr size_t kRecentMax = 64;
constexpr size_t kColdKept = 16;

bool IsCold(const StartSample& sample) {
  return sample.result == StartResult::kCold || sample.result == StartResult::kBuilder;
}

bool IsHit(const StartSample& sample) {
  return sample.result == StartResult::kHit;
}

double Median(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

template <typename Accept>
std::vector<double> StartSeconds(const std::vector<StartSample>& samples, const Accept& accept) {
  std::vector<double> out;
  for (const StartSample& sample : samples) {
    if (sample.start_seconds > 0 && accept(sample)) {
      out.push_back(sample.start_seconds);
    }
  }
  return out;
}

// Returns the median of the accepted cold starts. Uses builders' starts only if there are no cold
// ones, because a capture may have slowed a builder down.
template <typename Accept>
double ColdMedian(const std::vector<StartSample>& samples, const Accept& accept) {
  const auto cold = StartSeconds(samples, [&](const StartSample& each) {
    return each.result == StartResult::kCold && accept(each);
  });
  return !cold.empty() ? Median(cold) : Median(StartSeconds(samples, [&](const StartSample& each) {
    return each.result == StartResult::kBuilder && accept(each);
  }));
}

double ColdMedianFor(const api::Starts& starts, const StartSample& sample) {
  const double own = ColdMedian(
      starts.recent, [&](const StartSample& each) { return each.gpu_type == sample.gpu_type; });
  return own > 0 ? own : starts.cold_median_seconds;
}

// Returns the most seconds that a cache can save a start with this key; 0 if nothing is known.
double MostSavedFor(const api::Starts& starts, const std::vector<api::BundleStatus>& bundles,
                    const StartSample& sample) {
  std::vector<double> compiled_after;
  for (const StartSample& each : starts.recent) {
    if (IsCold(each) && each.compiled_after_seconds > 0 && !sample.key.empty() &&
        each.key == sample.key) {
      compiled_after.push_back(each.compiled_after_seconds);
    }
  }
  if (!compiled_after.empty()) {
    return Median(std::move(compiled_after));
  }
  // A bundle without native code serves keys of other CPU classes of its GPU type as well.
  double most = 0;
  for (const api::BundleStatus& bundle : bundles) {
    if (bundle.key == sample.key) {
      return bundle.compile_seconds;
    }
    if (bundle.gpu_type == sample.gpu_type && !bundle.native) {
      most = std::max(most, bundle.compile_seconds);
    }
  }
  return most;
}

// Limits `recent` to kRecentMax. Removes the oldest cold start if more than kColdKept are cold,
// else the oldest other start. So the newest kColdKept cold starts stay: cold starts become rare,
// and every saving is measured against them.
void Trim(std::vector<StartSample>& recent) {
  while (recent.size() > kRecentMax) {
    const auto cold = static_cast<size_t>(std::count_if(recent.begin(), recent.end(), IsCold));
    const auto oldest = std::find_if(recent.begin(), recent.end(), [&](const StartSample& each) {
      return IsCold(each) == (cold > kColdKept);
    });
    recent.erase(oldest == recent.end() ? recent.begin() : oldest);
  }
}

}  // namespace

double NetSavedSeconds(const api::Starts& starts, const std::vector<api::BundleStatus>& bundles,
                       const StartSample& sample) {
  const double hold = sample.hold_seconds;
  switch (sample.result) {
    case StartResult::kBuilder:
      return 0;
    case StartResult::kCold:
    case StartResult::kUnknown:
      return Rounded(-hold);
    case StartResult::kHit:
    case StartResult::kPartial:
    case StartResult::kMiss:
    case StartResult::kInert:
    case StartResult::kHollow:
      break;
  }
  const double cold = ColdMedianFor(starts, sample);
  if (cold <= 0 || sample.start_seconds <= 0) {
    return Rounded(-hold);
  }
  const bool used = sample.result != StartResult::kMiss && sample.result != StartResult::kInert;
  const double most = used ? MostSavedFor(starts, bundles, sample) : 0;
  return Rounded(std::min(cold - (hold + sample.start_seconds), most));
}

double ColdSecondsOfKey(const api::Starts& starts, std::string_view key) {
  return ColdMedian(starts.recent, [&](const StartSample& each) { return each.key == key; });
}

double ColdSeconds(const api::Starts& starts, const StartKind& kind) {
  const double own = ColdSecondsOfKey(starts, kind.key);
  return own > 0 ? own : ColdMedian(starts.recent, [&](const StartSample& each) {
    return each.gpu_type == kind.gpu_type;
  });
}

double WarmSeconds(const api::Starts& starts, const StartKind& kind) {
  const double own = Median(StartSeconds(
      starts.recent, [&](const StartSample& each) { return IsHit(each) && each.key == kind.key; }));
  return own > 0 ? own : Median(StartSeconds(starts.recent, [&](const StartSample& each) {
    return IsHit(each) && each.gpu_type == kind.gpu_type;
  }));
}

void AddSample(api::Starts& starts, const StartSample& sample) {
  AddToTotals(starts, sample);
  starts.recent.push_back(sample);
  Trim(starts.recent);
  const auto any = [](const StartSample&) { return true; };
  if (const double cold = ColdMedian(starts.recent, any); cold > 0) {
    starts.cold_median_seconds = Rounded(cold);
  }
  if (const double warm = Median(StartSeconds(starts.recent, IsHit)); warm > 0) {
    starts.warm_median_seconds = Rounded(warm);
  }
  std::vector<double> holds;
  for (const StartSample& each : starts.recent) {
    if (each.result != StartResult::kBuilder) {
      holds.push_back(each.hold_seconds);
    }
  }
  starts.hold_median_seconds = Rounded(Median(std::move(holds)));
}

std::string DescribeSample(const StartSample& sample, std::string_view skip_reason) {
  codec::Json out = {{"result", std::string(api::Name(sample.result))},
                     {"startSeconds", Rounded(sample.start_seconds)},
                     {"holdSeconds", Rounded(sample.hold_seconds)},
                     {"compileSeconds", Rounded(sample.compile_seconds)},
                     {"savedSeconds", Rounded(sample.saved_seconds)}};
  if (!sample.cause.empty()) {
    out["cause"] = sample.cause;
  }
  if (!skip_reason.empty()) {
    out["skipReason"] = std::string(skip_reason);
  }
  return codec::DumpJson(out);
}

std::string ShareOf(const api::StartCounts& counts, StartResult result) {
  const int64_t all =
      counts.cold + counts.hit + counts.partial + counts.miss + counts.inert + counts.hollow;
  return all == 0 ? "" : fmt::format("{}%", CountOf(counts, result) * 100 / all);
}

}  // namespace cachewarm::plan
