// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/client/base64.h"

#include <cstdint>

namespace cachewarm::kube {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

absl::StatusOr<std::string> DecodeBase64(std::string_view text) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  size_t digits = 0;
  size_t padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ') {
      continue;
    }
    if (c == '=') {
      ++padding;
      continue;
    }
    const size_t value = kDigits.find(c);
    if (value == std::string_view::npos || padding > 0) {
      return absl::InvalidArgumentError("is not base64");
    }
    bits = (bits << 6U) | static_cast<uint32_t>(value);
    count += 6;
    ++digits;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xffU);
    }
  }
  if ((digits + padding) % 4 != 0 || padding > 2) {
    return absl::InvalidArgumentError("is not base64: its length is no multiple of 4");
  }
  return bytes;
}

}  // namespace cachewarm::kube
