// SPDX-License-Identifier: Apache-2.0
#include "lib/base/retry_after.h"

#include <charconv>
#include <cstdint>
#include <string>

#include "absl/strings/cord.h"

namespace cachewarm {
namespace {

constexpr char kRetryAfter[] = "cachewarm.io/retry-after-ms";

}  // namespace

void SetRetryAfter(absl::Status& status, Duration wait) {
  status.SetPayload(kRetryAfter, absl::Cord(std::to_string(wait.count())));
}

std::optional<Duration> RetryAfterOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryAfter);
  if (!payload.has_value()) {
    return std::nullopt;
  }
  const std::string text(*payload);
  int64_t milliseconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  return error == std::errc() ? std::optional(Duration(milliseconds)) : std::nullopt;
}

}  // namespace cachewarm
