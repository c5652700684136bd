// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/utf8.h"

#include <cstdint>

#include "fmt/format.h"

namespace cachewarm::bundle {
namespace {

struct Lead {
  size_t length;  // 0: cannot start a character
  uint32_t bits;
  uint32_t least;  // the smallest code point that needs this length
};

Lead Classify(unsigned char byte) {
  if (byte < 0x80) {
    return {1, byte, 0};
  }
  if (byte >= 0xC2 && byte < 0xE0) {
    return {2, byte & 0x1FU, 0x80};
  }
  if (byte >= 0xE0 && byte < 0xF0) {
    return {3, byte & 0x0FU, 0x800};
  }
  if (byte >= 0xF0 && byte < 0xF5) {
    return {4, byte & 0x07U, 0x10000};
  }
  return {0, 0, 0};
}

bool IsAllowed(uint32_t point, uint32_t least) {
  const bool control = point < 0x20 || (point >= 0x7F && point < 0xA0);
  const bool surrogate = point >= 0xD800 && point < 0xE000;
  return point >= least && point <= 0x10FFFF && !control && !surrogate;
}

}  // namespace

bool IsPlainUtf8(std::string_view text) {
  while (!text.empty()) {
    const Lead lead = Classify(static_cast<unsigned char>(text.front()));
    if (lead.length == 0 || lead.length > text.size()) {
      return false;
    }
    uint32_t point = lead.bits;
    for (size_t i = 1; i < lead.length; ++i) {
      const auto next = static_cast<unsigned char>(text[i]);
      if ((next & 0xC0U) != 0x80) {
        return false;
      }
      point = (point << 6U) | (next & 0x3FU);
    }
    if (!IsAllowed(point, lead.least)) {
      return false;
    }
    text.remove_prefix(lead.length);
  }
  return true;
}

std::string Printable(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    if (c >= 0x20 && c < 0x7F) {
      shown.push_back(c);
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return shown;
}

}  // namespace cachewarm::bundle
