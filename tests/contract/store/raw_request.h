// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/http/text/headers.h"

namespace cachewarm::bundle {

// A request that a RawConnection read.
struct RawRequest {
  std::string method;
  std::string target;
  http::Headers headers;
  std::string body;
};

inline RawRequest ParseRawRequest(const std::string& text) {
  RawRequest request;
  const size_t head_end = text.find("\r\n\r\n");
  size_t line = text.find("\r\n");
  const size_t first_blank = text.find(' ');
  const size_t second_blank = text.find(' ', first_blank + 1);
  request.method = text.substr(0, first_blank);
  request.target = text.substr(first_blank + 1, second_blank - first_blank - 1);
  while (line < head_end) {
    const size_t begin = line + 2;
    line = text.find("\r\n", begin);
    const size_t colon = text.find(':', begin);
    const size_t value = text.find_first_not_of(' ', colon + 1);
    request.headers.Add(text.substr(begin, colon - begin), text.substr(value, line - value));
  }
  request.body = text.substr(head_end + 4);
  return request;
}

struct ByteRange {
  int64_t first = 0;
  int64_t last = 0;
};

// The numbers of "Range: bytes=100-199".
inline std::optional<ByteRange> RangeOf(const RawRequest& request) {
  const std::string text = request.headers.Find("Range").value_or("");
  const size_t dash = text.find('-');
  if (!text.starts_with("bytes=") || dash == std::string::npos) {
    return std::nullopt;
  }
  return ByteRange{.first = std::stoll(text.substr(6)), .last = std::stoll(text.substr(dash + 1))};
}

}  // namespace cachewarm::bundle
