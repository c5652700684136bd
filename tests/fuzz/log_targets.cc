// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "operator/engine_log/parse.h"
#include "tests/fuzz/targets.h"

namespace cachewarm::fuzz {

// Input: the log of a container.
void EngineLog(std::string_view bytes) {
  const api::EngineStart start = engine_log::ParseEngineLog(bytes);
  for (const double seconds : {start.weights_seconds, start.compile_seconds,
                               start.graph_capture_seconds, start.init_seconds}) {
    Require(std::isfinite(seconds) && seconds >= 0 && seconds <= 7 * 86'400.0,
            "a phase takes at most a week");
  }
  Require(start.kv_cache_tokens >= 0 && start.kv_cache_tokens <= 1'000'000'000'000,
          "a KV cache holds at most 10^12 tokens");
  Require(start.log != api::EngineLog::kUnreadable, "a log that was read is readable");
  Require((start == api::EngineStart{.log = api::EngineLog::kNothingFound}) ==
              (start.log == api::EngineLog::kNothingFound),
          "a log without a number reports nothing");
}

}  // namespace cachewarm::fuzz
