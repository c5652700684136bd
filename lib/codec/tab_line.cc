// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/tab_line.h"

#include <charconv>
#include <utility>

#include "fmt/format.h"

namespace cachewarm::codec {

std::string_view TabLine::Text(std::string_view name, size_t bytes_max) {
  if (!has_more_) {
    Fail(name, "is missing");
    return {};
  }
  const size_t tab = rest_.find('\t');
  const std::string_view field = rest_.substr(0, tab);
  has_more_ = tab != std::string_view::npos;
  rest_.remove_prefix(has_more_ ? tab + 1 : rest_.size());
  if (field.empty() || field.size() > bytes_max) {
    Fail(name, fmt::format("expected 1 to {} bytes, found {}", bytes_max, field.size()));
  }
  return field;
}

int64_t TabLine::Number(std::string_view name, int64_t min, int64_t max) {
  constexpr size_t kBytesMax = 20;
  const std::string_view field = Text(name, kBytesMax);
  int64_t value = min;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || value < min || value > max) {
    Fail(name, fmt::format("expected an integer, {} to {}", min, max));
  }
  return value;
}

Digest TabLine::Sha256(std::string_view name) {
  constexpr size_t kHexBytes = 64;
  auto digest = Digest::Parse(fmt::format("sha256:{}", Text(name, kHexBytes)));
  if (!digest.ok()) {
    Fail(name, "expected 64 lower-case hex digits");
    return {};
  }
  return *std::move(digest);
}

void TabLine::Fail(std::string_view name, std::string_view problem) {
  if (status_.ok()) {
    status_ = absl::InvalidArgumentError(fmt::format("{}: {}", name, problem));
  }
}

}  // namespace cachewarm::codec
