// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/base64.h"

#include <algorithm>

#include "absl/strings/escaping.h"

namespace cachewarm::codec {

std::string EncodeBase64(std::string_view bytes) {
  return absl::Base64Escape({bytes.data(), bytes.size()});
}

absl::StatusOr<std::string> DecodeBase64(std::string_view text) {
  const auto is_blank = [](char c) { return c == '\n' || c == '\r' || c == ' '; };
  const auto is_digit = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/' || c == '=';
  };
  const auto blanks = std::count_if(text.begin(), text.end(), is_blank);
  // Reject missing padding and non-standard characters, which absl accepts.
  if (!std::all_of(text.begin(), text.end(), [&](char c) { return is_blank(c) || is_digit(c); }) ||
      (static_cast<std::ptrdiff_t>(text.size()) - blanks) % 4 != 0) {
    return absl::InvalidArgumentError("is not base64");
  }
  std::string bytes;
  if (!absl::Base64Unescape({text.data(), text.size()}, &bytes)) {
    return absl::InvalidArgumentError("is not base64");
  }
  return bytes;
}

}  // namespace cachewarm::codec
