// SPDX-License-Identifier: Apache-2.0
#include "operator/engine_log/parse.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>

namespace cachewarm::engine_log {
namespace {

constexpr size_t kLineBytesMax = 4096;
constexpr size_t kPrefixesMax = 16;
constexpr size_t kGapBytesMax = 48;
constexpr size_t kRanksMax = 256;
constexpr size_t kNumberBytesMax = 24;
constexpr double kSecondsMax = 7.0 * 86'400;
constexpr double kTokensMax = 1e12;

enum Number { kWeights, kModel, kCompile, kGraphCapture, kInit, kSecondsCount, kTokens };

// A message with a number: `start`, a text of at most kGapBytesMax, `before`, the number, `unit`.
// If `before` is empty, the number follows `start`.
struct Pattern {
  std::string_view start;
  std::string_view before;
  std::string_view unit;
  Number number = kWeights;
  bool is_total = false;  // a later message of the same rank includes the earlier ones
};

constexpr std::array kPatterns = {
    // vLLM: model_executor/model_loader, v1/worker/gpu_model_runner.py, compilation/monitor.py,
    // v1/engine/core.py, v1/core/kv_cache_utils.py
    Pattern{"Loading weights took ", "", " seconds", kWeights},
    Pattern{"Model loading took ", " and ", " seconds", kModel},
    Pattern{"torch.compile took ", "", " s in total", kCompile},
    Pattern{"torch.compile and initial profiling/warmup run together took ", "", " s in total",
            kCompile},
    Pattern{"torch.compile takes ", "", " s in total", kCompile, true},
    Pattern{"Graph capturing finished in ", "", " secs", kGraphCapture},
    Pattern{"init engine (", ") took ", " s", kInit},
    Pattern{"", "KV cache size: ", " tokens", kTokens},  // after "GPU ", "CPU ", "GPU + host "
    // SGLang: srt/model_executor/model_runner.py, srt/managers/scheduler.py, srt/speculative
    Pattern{"Load weight end. elapsed=", "", " s", kWeights},
    Pattern{"Capture ", "graph end. Time elapsed: ", " s", kGraphCapture},
    Pattern{"Capture ", "graph end. elapsed=", " s", kGraphCapture},
    Pattern{"max_total_num_tokens=", "", ",", kTokens},
};

// The engine has started; later lines may contain text of requests.
constexpr std::array<std::string_view, 2> kServes = {"Application startup complete",
                                                     "The server is fired up and ready to roll"};

// Parses a number with an optional fraction, such as "12.5" or "188,640", that `unit` follows.
std::optional<double> ParseNumber(std::string_view text, std::string_view unit) {
  std::string digits;
  size_t at = 0;
  for (; at < std::min(text.size(), kNumberBytesMax); ++at) {
    if ((text[at] >= '0' && text[at] <= '9') || text[at] == '.') {
      digits += text[at];
    } else if (text[at] != ',' || digits.empty() || at + 1 >= text.size() || text[at + 1] < '0' ||
               text[at + 1] > '9') {
      break;
    }
  }
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [last, error] = std::from_chars(digits.data(), end, value, std::chars_format::fixed);
  if (digits.empty() || error != std::errc() || last != end || !std::isfinite(value) ||
      !text.substr(at).starts_with(unit)) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> Match(const Pattern& pattern, std::string_view message) {
  if (!message.starts_with(pattern.start)) {
    return std::nullopt;
  }
  message.remove_prefix(pattern.start.size());
  const size_t before =
      message.substr(0, kGapBytesMax + pattern.before.size()).find(pattern.before);
  if (before == std::string_view::npos) {
    return std::nullopt;
  }
  return ParseNumber(message.substr(before + pattern.before.size()), pattern.unit);
}

// Returns the rank that a logger's prefix names, such as "Worker_TP0" of
// "(Worker_TP0 pid=7) INFO 01-01 00:00:00 [a.py:1] " and "DP1 TP0" of "[2026-01-01 00:00:00 DP1
// TP0] ";
// "" if it names none.
std::string_view RankOf(std::string_view prefix) {
  if (const size_t pid = prefix.rfind(" pid="); pid != std::string_view::npos) {
    const size_t open = prefix.rfind('(', pid);
    return open == std::string_view::npos ? "" : prefix.substr(open + 1, pid - open - 1);
  }
  const size_t open = prefix.rfind('[');
  const size_t close = prefix.rfind(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return "";
  }
  const std::string_view inside = prefix.substr(open + 1, close - open - 1);
  const size_t date = inside.find(' ');
  const size_t time = date == std::string_view::npos ? date : inside.find(' ', date + 1);
  return time == std::string_view::npos ? "" : inside.substr(time + 1);
}

using Seconds = std::array<double, kSecondsCount>;

class Reader {
 public:
  // Reads one line. Returns false if the engine has started.
  bool ReadLine(std::string_view line) {
    if (std::any_of(kServes.begin(), kServes.end(), [&](std::string_view text) {
          return line.find(text) != std::string_view::npos;
        })) {
      return false;
    }
    size_t at = 0;
    for (size_t prefixes = 0; prefixes < kPrefixesMax; ++prefixes) {
      if (ReadMessage(line.substr(0, at), line.substr(at))) {
        break;
      }
      const size_t bracket = line.find("] ", at);
      if (bracket == std::string_view::npos) {
        break;
      }
      at = bracket + 2;
    }
    return true;
  }

  api::EngineStart Result() const {
    const double weights = Longest(kWeights);
    api::EngineStart out{.log = api::EngineLog::kFound,
                         .weights_seconds = weights > 0 ? weights : Longest(kModel),
                         .compile_seconds = Longest(kCompile),
                         .graph_capture_seconds = Longest(kGraphCapture),
                         .init_seconds = Longest(kInit),
                         .kv_cache_tokens = tokens_};
    if (out == api::EngineStart{.log = api::EngineLog::kFound}) {
      out.log = api::EngineLog::kNothingFound;
    }
    return out;
  }

 private:
  // Returns true if the message reports a number.
  bool ReadMessage(std::string_view prefix, std::string_view message) {
    for (const Pattern& pattern : kPatterns) {
      if (const std::optional<double> value = Match(pattern, message); value.has_value()) {
        Add(pattern, RankOf(prefix), *value);
        return true;
      }
    }
    return false;
  }

  void Add(const Pattern& pattern, std::string_view rank, double value) {
    if (pattern.number == kTokens) {
      if (value >= 1 && value <= kTokensMax) {
        const auto tokens = static_cast<int64_t>(value);
        tokens_ = tokens_ == 0 ? tokens : std::min(tokens_, tokens);
      }
      return;
    }
    const std::string name(rank);
    if (value > kSecondsMax || (ranks_.size() >= kRanksMax && !ranks_.contains(name))) {
      return;
    }
    double& seconds = ranks_[name][pattern.number];
    seconds = pattern.is_total ? std::max(seconds, value) : seconds + value;
  }

  // Returns the seconds of the slowest rank in whole milliseconds; 0 if they are not plausible.
  double Longest(Number number) const {
    double longest = 0;
    for (const auto& [rank, seconds] : ranks_) {
      longest = std::max(longest, seconds[number]);
    }
    return longest > kSecondsMax ? 0 : std::round(longest * 1000) / 1000;
  }

  std::map<std::string, Seconds> ranks_;  // by name; "" if lines name no rank
  int64_t tokens_ = 0;
};

}  // namespace

api::EngineStart ParseEngineLog(std::string_view log) {
  log = log.substr(0, kLogBytesMax);
  Reader reader;
  // A carriage return ends a line, too: progress bars use it to overwrite themselves.
  while (!log.empty()) {
    const size_t end = std::min(log.find_first_of("\r\n"), log.size());
    if (!reader.ReadLine(log.substr(0, std::min(end, kLineBytesMax)))) {
      break;
    }
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return reader.Result();
}

}  // namespace cachewarm::engine_log
