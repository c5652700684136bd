// SPDX-License-Identifier: Apache-2.0
#include "lib/api/json/checks.h"

#include <algorithm>

#include "lib/base/hex.h"

namespace cachewarm::api::json {
namespace {

bool IsLower(char c) {
  return c >= 'a' && c <= 'z';
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsLetter(char c) {
  return IsLower(c) || (c >= 'A' && c <= 'Z');
}

bool AllOf(std::string_view text, bool (*allowed)(char)) {
  return std::all_of(text.begin(), text.end(), allowed);
}

// True if `check` is true for every part of `text` between separators.
bool EachPart(std::string_view text, char separator, Pattern check) {
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    if (!check(text.substr(begin, end == std::string_view::npos ? end : end - begin))) {
      return false;
    }
    if (end == std::string_view::npos) {
      return true;
    }
    begin = end + 1;
  }
}

bool IsPathSegment(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && AllOf(text, [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

bool IsDnsLabel(std::string_view text) {
  return !text.empty() && text.size() <= 63 && text.front() != '-' && text.back() != '-' &&
         AllOf(text, [](char c) { return IsLower(c) || IsDigit(c) || c == '-'; });
}

bool IsDnsSubdomain(std::string_view text) {
  return text.size() <= 253 && EachPart(text, '.', [](std::string_view part) {
           return !part.empty() && part.front() != '-' && part.back() != '-' &&
                  AllOf(part, [](char c) { return IsLower(c) || IsDigit(c) || c == '-'; });
         });
}

bool IsUid(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         AllOf(text, [](char c) { return IsLetter(c) || IsDigit(c) || c == '-'; });
}

bool IsRunAs(std::string_view text) {
  return text == "image" || (text.size() >= 2 && text.size() <= 11 && text.front() == 'u' &&
                             AllOf(text.substr(1), IsDigit));
}

bool IsKey(std::string_view text) {
  return text.size() == 64 && IsLowerHex(text);
}

bool IsTreeName(std::string_view text) {
  return !text.empty() && text.size() <= 128 &&
         AllOf(text, [](char c) { return IsLower(c) || IsDigit(c) || c == '-'; });
}

bool IsEnvName(std::string_view text) {
  return !text.empty() && text.size() <= 128 && !IsDigit(text.front()) &&
         AllOf(text, [](char c) { return IsLetter(c) || IsDigit(c) || c == '_'; });
}

bool IsRelativePath(std::string_view text) {
  return text.size() <= 128 && EachPart(text, '/', IsPathSegment);
}

}  // namespace cachewarm::api::json
