// SPDX-License-Identifier: Apache-2.0
#include "cli/status/engine_table.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "fmt/format.h"
#include "lib/api/engine_starts.h"
#include "lib/base/clock.h"
#include "lib/codec/json_value.h"

namespace cachewarm::status {
namespace {

using cli::Cell;
using cli::Row;

constexpr double kTenthsBelow = 60;  // shorter times are shown with tenths of a second
constexpr double kShownSecondsMax = 1e9;

Cell SecondsCell(double seconds) {
  if (seconds <= 0) {
    return {"-"};
  }
  if (seconds < kTenthsBelow) {
    return {fmt::format("{:.1f}s", seconds)};
  }
  const std::chrono::duration<double> shown(std::min(seconds, kShownSecondsMax));
  return {FormatDuration(std::chrono::duration_cast<Duration>(shown))};
}

Row RowOf(const std::string& gpu_type, std::string_view kind, const api::EngineMedians& medians) {
  Row row = {{gpu_type.empty() ? "-" : gpu_type},
             {std::string(kind)},
             {fmt::format("{}", medians.starts)}};
  for (const api::EnginePhase phase : api::kEnginePhases) {
    row.push_back(SecondsCell(SecondsOf(medians.start, phase)));
  }
  const int64_t tokens = medians.start.kv_cache_tokens;
  row.push_back({tokens > 0 ? fmt::format("{}", tokens) : "-"});
  return row;
}

codec::Json JsonOf(const std::string& gpu_type, std::string_view kind,
                   const api::EngineMedians& medians) {
  codec::Json out = {
      {"gpuType", gpu_type}, {"start", std::string(kind)}, {"starts", medians.starts}};
  const api::EngineStart& start = medians.start;
  for (const auto& [name, seconds] : {std::pair("weightsSeconds", start.weights_seconds),
                                      std::pair("compileSeconds", start.compile_seconds),
                                      std::pair("graphCaptureSeconds", start.graph_capture_seconds),
                                      std::pair("initSeconds", start.init_seconds)}) {
    if (seconds > 0) {
      out[name] = seconds;
    }
  }
  if (start.kv_cache_tokens > 0) {
    out["kvCacheTokens"] = start.kv_cache_tokens;
  }
  return out;
}

// Calls `each` with the GPU type, "cold" or "warm", and the medians.
template <typename Each>
void ForEachRow(const api::Starts& starts, const Each& each) {
  for (const api::EngineComparison& comparison : api::CompareEngineStarts(starts.recent)) {
    each(comparison.gpu_type, "cold", comparison.cold);
    each(comparison.gpu_type, "warm", comparison.warm);
  }
}

}  // namespace

std::vector<Row> EngineTable(const api::Starts& starts) {
  std::vector<Row> table = {{{"GPU TYPE"},
                             {"START"},
                             {"STARTS"},
                             {"WEIGHTS"},
                             {"COMPILE"},
                             {"GRAPHS"},
                             {"INIT"},
                             {"KV TOKENS"}}};
  ForEachRow(starts, [&](const auto& gpu_type, std::string_view kind, const auto& medians) {
    table.push_back(RowOf(gpu_type, kind, medians));
  });
  return table.size() > 1 ? table : std::vector<Row>();
}

codec::Json EngineJson(const api::Starts& starts) {
  codec::Json list = codec::Json::array();
  ForEachRow(starts, [&](const auto& gpu_type, std::string_view kind, const auto& medians) {
    list.push_back(JsonOf(gpu_type, kind, medians));
  });
  return list;
}

}  // namespace cachewarm::status
