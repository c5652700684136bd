// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "lib/api/starts.h"

// Reads the duration of start-up phases and the size of the KV cache from the log of vLLM or
// SGLang. Pure.
namespace cachewarm::engine_log {

// Bytes of a log that are read, from its beginning. An engine reports its start first.
inline constexpr size_t kLogBytesMax = size_t{2} << 20U;

// Returns what the log reports about the start. The messages are those of vLLM 0.8 to 0.32 and of
// SGLang 0.4 to 0.5; other messages are ignored.
//
// Several ranks start at the same time, so that a phase lasts as long as that of the slowest rank.
// A rank that reports a phase several times (a draft model) spent the sum. The size of the KV cache
// is the smallest one of all ranks.
//
// The log is untrusted: the text of a request may look like a message of the engine. Reading ends
// where the engine reports that it serves requests, and a message counts only at the beginning of a
// line or after a logger's prefix. Numbers beyond a week or 10^12 tokens are ignored.
api::EngineStart ParseEngineLog(std::string_view log);

}  // namespace cachewarm::engine_log
