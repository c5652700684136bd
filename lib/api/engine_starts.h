// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/starts.h"

// Compares cold and warm starts as their engines reported them (StartSample::engine). Pure.
namespace cachewarm::api {

// The parts of a start that engines time. kInit contains kCompile and kGraphCapture.
enum class EnginePhase { kWeights, kCompile, kGraphCapture, kInit };
inline constexpr std::array kEnginePhases = {EnginePhase::kWeights, EnginePhase::kCompile,
                                             EnginePhase::kGraphCapture, EnginePhase::kInit};
std::string_view Name(EnginePhase phase);  // "graph_capture", as in metric labels
// Returns the seconds of the phase; 0 if the engine did not report it.
double SecondsOf(const EngineStart& start, EnginePhase phase);

// The reports of several starts. Each number of `start` is the median of the starts that report
// it; 0: none does.
struct EngineMedians {
  int64_t starts = 0;  // starts whose log reports anything
  EngineStart start;
};

struct EngineComparison {
  std::string gpu_type;
  EngineMedians cold;  // of cold starts; if there are none, of builders
  EngineMedians warm;  // of hits; if there are none, of partial hits
};

// Returns a comparison for each GPU type of which an engine reported a cold or warm start, sorted
// by type.
std::vector<EngineComparison> CompareEngineStarts(const std::vector<StartSample>& recent);

// Returns the median KV-cache size of the starts with this GPU type and result; 0 if no engine
// reported one.
int64_t MedianKvCacheTokens(const std::vector<StartSample>& recent, std::string_view gpu_type,
                            StartResult result);

}  // namespace cachewarm::api
