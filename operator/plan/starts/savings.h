// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/api/cache_warmup.h"

// Computes from status.starts the time that the cache saved. Pure.
namespace cachewarm::plan {

// Returns the net seconds that `sample` saved compared with a cold start of its GPU type:
//   hit, partial, hollow  min(cold median − (hold + start), most); may be negative
//   miss, inert           the same, at most 0: an unused cache saves nothing
//   cold, unknown         − hold
//   builder               0
// The cold median is the median of cold starts; if there were none, of builders' starts. `most` is
// the median time from the start of the container to the last compiled file, of cold and builders'
// starts with the sample's key: after that file a cache saves nothing. This limit is correct both
// for engines that write one file after all compiles and for engines that write many. If no such
// start was observed, `most` is the compile time recorded in the bundle; if that is unknown too, it
// is 0. If there is no cold median, or the start of `sample` was not measured, the result is −hold
// (of a builder: 0).
double NetSavedSeconds(const api::Starts& starts, const std::vector<api::BundleStatus>& bundles,
                       const api::StartSample& sample);

// Selects measured starts: those with `key`; if there are none, those with `gpu_type`.
struct StartKind {
  std::string key;
  std::string gpu_type;
};

// Returns the median seconds of cold starts with this key; if there are none, with this GPU type; 0
// if none was measured. Builders' starts are used only if there are no other cold starts.
double ColdSeconds(const api::Starts& starts, const StartKind& kind);
// Returns the median seconds of cold starts with this key; 0 if none was measured. Builders' starts
// are used only if there are no other cold starts.
double ColdSecondsOfKey(const api::Starts& starts, std::string_view key);
// Returns the median seconds of hits with this key; if there are none, with this GPU type; 0 if
// none was measured.
double WarmSeconds(const api::Starts& starts, const StartKind& kind);

// Adds the sample to the totals (totals.h) and to `recent`, and updates the medians. `recent` keeps
// 64 samples, among them the newest 16 cold starts.
void AddSample(api::Starts& starts, const api::StartSample& sample);

// Returns the JSON object of annotation kStartAnnotation. `skip_reason` is the reason why the pod
// did not get the cache, "" if it did.
std::string DescribeSample(const api::StartSample& sample, std::string_view skip_reason);

// Returns the share of starts with this result among the counted starts, such as "97%"; "" if there
// are none. Ignores starts of builders and unknown results.
std::string ShareOf(const api::StartCounts& counts, api::StartResult result);

}  // namespace cachewarm::plan
