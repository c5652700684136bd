// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lib/api/cache_warmup.h"

// What the cache was worth, from counted starts alone. Pure arithmetic on status.starts.
namespace cachewarm::plan {

// Net seconds that `sample` saved against a cold start of its GPU type:
//   hit, partial, hollow  min(cold median − (hold + start), compile span), negative when it cost
//   miss, inert           the same, never above 0: what it did not use saved nothing
//   cold, unknown         − hold: the wait was all that we did to it
//   builder               0
// The cold median is that of cold starts, of builders' where there were none; the span is the
// longest that was seen for its key in a builder's or cold pod's events, else the compile seconds
// found in the bundle. Where no cold start was seen nothing is claimed but the hold.
double NetSavedSeconds(const api::WarmupStatus& status, const api::StartSample& sample);

// What measured starts are looked up by.
struct StartKind {
  std::string key;
  std::string gpu_type;
};

// Median seconds of the cold starts of this key, else of this GPU type; builders' where there were
// no others. 0: none was measured.
double ColdSeconds(const api::Starts& starts, const StartKind& kind);
// The same of the starts that hit.
double WarmSeconds(const api::Starts& starts, const StartKind& kind);

// Counts the sample, keeps it in `recent` (64, of which the newest 16 cold ones stay longest) and
// refreshes medians and sums.
void AddSample(api::Starts& starts, const api::StartSample& sample);

// The JSON object of annotation kStartAnnotation. `skip_reason`: why the pod was not given the
// cache,
// "" for one that was.
std::string DescribeSample(const api::StartSample& sample, std::string_view skip_reason);

// "97%": hits ÷ all first starts of injected pods that were not builders, unknown left out.
std::string HitRate(const api::StartCounts& counts);

}  // namespace cachewarm::plan
