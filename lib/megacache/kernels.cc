// SPDX-License-Identifier: Apache-2.0
#include "lib/megacache/kernels.h"

#include <algorithm>

namespace cachewarm::megacache {
namespace {

constexpr std::string_view kLiteralBegin = "r'''";
constexpr std::string_view kLiteralEnd = "'''";
// Shorter literals are no kernel: the name of a kernel's function alone is longer.
constexpr size_t kSourceBytesMin = 32;

constexpr std::string_view kSetting = "inductor_config[cpp_cache_precompile_headers]: ";

size_t CommonPrefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                             a.begin());
}

}  // namespace

KernelSources::KernelSources(std::span<const Entry> entries) {
  for (const Entry& entry : entries) {
    const std::string_view content = entry.content;
    for (size_t at = content.find(kLiteralBegin); at != std::string_view::npos;
         at = content.find(kLiteralBegin, at)) {
      at += kLiteralBegin.size();
      const size_t end = content.find(kLiteralEnd, at);
      if (end == std::string_view::npos) {
        break;
      }
      if (end - at >= kSourceBytesMin) {
        sources_.push_back(content.substr(at, end - at));
      }
      at = end + kLiteralEnd.size();
    }
  }
  std::sort(sources_.begin(), sources_.end());
  sources_.erase(std::unique(sources_.begin(), sources_.end()), sources_.end());
}

std::optional<size_t> KernelSources::Find(std::string_view text) const {
  // Let P be a source that is a prefix of `text`. P does not sort after `text`, and every source
  // between P and `text` begins with P. So the predecessor of `text` is P, or shares with `text` a
  // prefix that is at least as long as P.
  while (!text.empty()) {
    const auto after = std::upper_bound(sources_.begin(), sources_.end(), text);
    if (after == sources_.begin()) {
      return std::nullopt;
    }
    const std::string_view before = *std::prev(after);
    if (text.starts_with(before)) {
      return static_cast<size_t>(std::prev(after) - sources_.begin());
    }
    text = text.substr(0, CommonPrefix(before, text));
  }
  return std::nullopt;
}

std::optional<bool> PrecompilesHeaders(std::span<const Entry> entries) {
  for (const Entry& entry : entries) {
    const size_t at = entry.content.find(kSetting);
    if (at == std::string_view::npos) {
      continue;
    }
    const std::string_view value = entry.content.substr(at + kSetting.size());
    if (value.starts_with("True") || value.starts_with("False")) {
      return value.starts_with("True");
    }
  }
  return std::nullopt;
}

}  // namespace cachewarm::megacache
