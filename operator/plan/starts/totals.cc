// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/starts/totals.h"

#include <algorithm>
#include <cmath>

namespace cachewarm::plan {

namespace {

// `Totals` is api::Starts or api::GpuTypeStarts.
template <typename Totals>
void Add(Totals& totals, const api::StartSample& sample) {
  ++CountOf(totals.counts, sample.result);
  if (sample.saved_seconds > 0) {
    totals.saved_seconds = Rounded(totals.saved_seconds + sample.saved_seconds);
  } else {
    totals.lost_seconds = Rounded(totals.lost_seconds - sample.saved_seconds);
  }
}

}  // namespace

api::GpuTypeStarts& TotalsOf(api::Starts& starts, std::string_view gpu_type) {
  std::vector<api::GpuTypeStarts>& types = starts.gpu_types;
  const std::string_view name = gpu_type.empty() ? kUnknownGpuType : gpu_type;
  const auto at = std::lower_bound(
      types.begin(), types.end(), name,
      [](const auto& each, std::string_view wanted) { return each.gpu_type < wanted; });
  if (at != types.end() && at->gpu_type == name) {
    return *at;
  }
  // The last place is for kOtherGpuType.
  if (types.size() + 1 >= api::kGpuTypeStartsMax && name != kOtherGpuType) {
    return TotalsOf(starts, kOtherGpuType);
  }
  return *types.insert(at, {.gpu_type = std::string(name)});
}

void AddToTotals(api::Starts& starts, const api::StartSample& sample) {
  Add(starts, sample);
  api::GpuTypeStarts& type = TotalsOf(starts, sample.gpu_type);
  Add(type, sample);
  const double gpu_seconds = sample.saved_seconds * sample.devices;
  type.saved_gpu_seconds = Rounded(type.saved_gpu_seconds + std::max(0.0, gpu_seconds));
  type.lost_gpu_seconds = Rounded(type.lost_gpu_seconds - std::min(0.0, gpu_seconds));
}

double Rounded(double seconds) {
  return std::round(seconds * 1000) / 1000 + 0.0;
}

}  // namespace cachewarm::plan
