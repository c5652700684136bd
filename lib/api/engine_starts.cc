// SPDX-License-Identifier: Apache-2.0
#include "lib/api/engine_starts.h"

#include <algorithm>
#include <set>

namespace cachewarm::api {
namespace {

// Returns the starts of one GPU type and result whose logs report anything.
std::vector<EngineStart> ReportsOf(const std::vector<StartSample>& recent,
                                   std::string_view gpu_type, StartResult result) {
  std::vector<EngineStart> found;
  for (const StartSample& sample : recent) {
    if (sample.gpu_type == gpu_type && sample.result == result && sample.engine.has_value() &&
        sample.engine->log == EngineLog::kFound) {
      found.push_back(*sample.engine);
    }
  }
  return found;
}

// Returns the median of the positive values of a member; 0 if there are none.
template <typename T>
T MedianOf(const std::vector<EngineStart>& starts, T EngineStart::*member) {
  std::vector<T> values;
  for (const EngineStart& start : starts) {
    if (start.*member > 0) {
      values.push_back(start.*member);
    }
  }
  if (values.empty()) {
    return 0;
  }
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) {
    return values[middle];
  }
  return values[middle - 1] + (values[middle] - values[middle - 1]) / 2;
}

EngineMedians MediansOf(const std::vector<EngineStart>& starts) {
  EngineMedians medians{.starts = static_cast<int64_t>(starts.size()), .start = {}};
  medians.start.log = starts.empty() ? EngineLog::kNothingFound : EngineLog::kFound;
  for (const auto member : {&EngineStart::weights_seconds, &EngineStart::compile_seconds,
                            &EngineStart::graph_capture_seconds, &EngineStart::init_seconds}) {
    medians.start.*member = MedianOf(starts, member);
  }
  medians.start.kv_cache_tokens = MedianOf(starts, &EngineStart::kv_cache_tokens);
  return medians;
}

// Returns the medians of the first result; of the second one if there are no starts with the first.
EngineMedians MediansOf(const std::vector<StartSample>& recent, std::string_view gpu_type,
                        StartResult first, StartResult second) {
  const std::vector<EngineStart> own = ReportsOf(recent, gpu_type, first);
  return MediansOf(own.empty() ? ReportsOf(recent, gpu_type, second) : own);
}

}  // namespace

std::string_view Name(EnginePhase phase) {
  switch (phase) {
    case EnginePhase::kWeights:
      return "weights";
    case EnginePhase::kCompile:
      return "compile";
    case EnginePhase::kGraphCapture:
      return "graph_capture";
    case EnginePhase::kInit:
      return "init";
  }
  return "";
}

double SecondsOf(const EngineStart& start, EnginePhase phase) {
  switch (phase) {
    case EnginePhase::kWeights:
      return start.weights_seconds;
    case EnginePhase::kCompile:
      return start.compile_seconds;
    case EnginePhase::kGraphCapture:
      return start.graph_capture_seconds;
    case EnginePhase::kInit:
      return start.init_seconds;
  }
  return 0;
}

std::vector<EngineComparison> CompareEngineStarts(const std::vector<StartSample>& recent) {
  std::set<std::string_view> types;
  for (const StartSample& sample : recent) {
    types.insert(sample.gpu_type);
  }
  std::vector<EngineComparison> out;
  for (const std::string_view type : types) {
    EngineComparison comparison{
        .gpu_type = std::string(type),
        .cold = MediansOf(recent, type, StartResult::kCold, StartResult::kBuilder),
        .warm = MediansOf(recent, type, StartResult::kHit, StartResult::kPartial)};
    if (comparison.cold.starts + comparison.warm.starts > 0) {
      out.push_back(std::move(comparison));
    }
  }
  return out;
}

int64_t MedianKvCacheTokens(const std::vector<StartSample>& recent, std::string_view gpu_type,
                            StartResult result) {
  return MedianOf(ReportsOf(recent, gpu_type, result), &EngineStart::kv_cache_tokens);
}

}  // namespace cachewarm::api
