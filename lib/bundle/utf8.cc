// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/utf8.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/base/utf8.h"

namespace cachewarm::bundle {

bool IsPlainUtf8(std::string_view text) {
  // Nearly all paths are printable ASCII.
  if (std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; })) {
    return true;
  }
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8SequenceLength(text, at);
    // The control characters U+0080 to U+009F are encoded as C2 80 to C2 9F.
    const bool control = length == 1 ? HasAsciiControl(text.substr(at, 1))
                                     : length == 2 && text[at] == '\xC2' &&
                                           static_cast<unsigned char>(text[at + 1]) < 0xA0;
    if (length == 0 || control) {
      return false;
    }
    at += length;
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
