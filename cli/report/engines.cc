// SPDX-License-Identifier: Apache-2.0
#include "cli/report/engines.h"

#include <array>
#include <utility>

#include "cli/report/html.h"
#include "cli/report/text.h"

namespace cachewarm::cli::report {
namespace {

std::vector<std::string> EngineRow(const WarmupRow& warmup, const api::EngineComparison& comparison,
                                   std::string_view kind, const api::EngineMedians& medians) {
  std::vector<std::string> row = {warmup.name, comparison.gpu_type, std::string(kind),
                                  FormatCount(medians.starts)};
  for (const api::EnginePhase phase : api::kEnginePhases) {
    const double seconds = SecondsOf(medians.start, phase);
    row.push_back(seconds > 0 ? FormatSeconds(seconds) : "-");
  }
  const int64_t tokens = medians.start.kv_cache_tokens;
  row.push_back(tokens > 0 ? FormatCount(tokens) : "-");
  return row;
}

}  // namespace

std::string EnginesSection(const Report& report) {
  std::vector<std::vector<std::string>> rows;
  for (const WarmupRow& warmup : report.warmups) {
    for (const api::EngineComparison& each : warmup.engines) {
      rows.push_back(EngineRow(warmup, each, "cold", each.cold));
      rows.push_back(EngineRow(warmup, each, "warm", each.warm));
    }
  }
  if (rows.empty()) {
    return "";
  }
  auto [shown, omitted] = EndsOf(rows, kTableRowsMax, 0);
  const Table table{
      .caption = "Median start-up phases and size of the KV cache, as vLLM and SGLang log them",
      .columns = {{"Warmup"},
                  {"GPU type"},
                  {"Start"},
                  {"Starts", true},
                  {"Weights", true},
                  {"Compile", true},
                  {"CUDA graphs", true},
                  {"Init", true},
                  {"KV cache (tokens)", true}},
      .rows = std::move(shown),
      .omitted = omitted,
      .noun = "row"};
  return Render(Section{
      .id = "engines",
      .title = "Cold against warm, as engines log it",
      .lead = "Medians of the recent starts. Init contains compile and CUDA graphs. A cold start "
              "measures less memory for the KV cache, because compiling needs memory, too.",
      .html = Render(table)});
}

}  // namespace cachewarm::cli::report
