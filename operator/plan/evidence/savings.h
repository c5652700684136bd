// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lib/api/cache_warmup.h"

// The benefit of the cache, computed from the starts in status.starts alone. Pure arithmetic.
namespace cachewarm::plan {

// Returns the net seconds that `sample` saved compared with a cold start of its GPU type:
//   hit, partial, hollow  min(cold median − (hold + start), compile span); may be negative
//   miss, inert           the same, at most 0: an unused cache saves nothing
//   cold, unknown         − hold
//   builder               0
// The cold median is that of cold starts, or of builders if there were none. The compile span is
// the longest one measured for its key in a builder or cold pod, else the compile seconds recorded
// in the bundle. Without any cold start only the hold is counted.
double NetSavedSeconds(const api::WarmupStatus& status, const api::StartSample& sample);

// Selects the measured starts to compare with.
struct StartKind {
  std::string key;
  std::string gpu_type;
};

// Returns the median seconds of cold starts of this key, else of this GPU type; of builders if
// there were no others; 0 if none was measured.
double ColdSeconds(const api::Starts& starts, const StartKind& kind);
// Returns the median seconds of starts with a hit, of this key, else of this GPU type; 0 if none
// was measured.
double WarmSeconds(const api::Starts& starts, const StartKind& kind);

// Adds the sample to `counts` and to `recent` (64 entries, of which the newest 16 cold ones stay
// longest), and updates medians and sums.
void AddSample(api::Starts& starts, const api::StartSample& sample);

// Returns the JSON object of annotation kStartAnnotation. `skip_reason` is the reason why the pod
// did not get the cache, "" if it did.
std::string DescribeSample(const api::StartSample& sample, std::string_view skip_reason);

// Returns "97%": hits ÷ all first starts of injected pods, without builders and unknown ones.
std::string HitRate(const api::StartCounts& counts);

}  // namespace cachewarm::plan
