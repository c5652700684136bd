// SPDX-License-Identifier: Apache-2.0
#include "cli/report/text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "fmt/format.h"
#include "lib/base/clock.h"
#include "lib/base/utf8.h"

namespace cachewarm::cli::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";     // U+2026

struct Character {
  std::string_view bytes;
  size_t columns = 1;
};

char32_t CodePoint(std::string_view sequence) {
  if (sequence.size() == 1) {
    return static_cast<unsigned char>(sequence[0]);
  }
  // The first byte of a sequence of n bytes has 7 - n bits of the code point.
  char32_t code = static_cast<unsigned char>(sequence[0]) & (0x7FU >> sequence.size());
  for (const char next : sequence.substr(1)) {
    code = (code << 6U) | (static_cast<unsigned char>(next) & 0x3FU);
  }
  return code;
}

bool IsBetween(char32_t code, char32_t first, char32_t last) {
  return first <= code && code <= last;
}

// True for characters that are invisible, that change the direction of other text, or that XML does
// not allow.
bool IsDeceptive(char32_t code) {
  return code < 0x20 || IsBetween(code, 0x7F, 0x9F) || code == 0xAD || code == 0x61C ||
         IsBetween(code, 0x200B, 0x200F) || IsBetween(code, 0x2028, 0x202E) ||
         IsBetween(code, 0x2060, 0x206F) || code == 0xFEFF || IsBetween(code, 0xFFF9, 0xFFFB) ||
         (code & 0xFFFEU) == 0xFFFE || IsBetween(code, 0xE0000, 0xE0FFF);
}

std::vector<Character> CharactersOf(std::string_view text) {
  std::vector<Character> characters;
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8SequenceLength(text, at);
    const std::string_view bytes = text.substr(at, std::max<size_t>(length, 1));
    at += bytes.size();
    if (bytes == "\n" || bytes == "\t" || bytes == "\r") {
      characters.push_back({" "});
    } else if (length == 0 || IsDeceptive(CodePoint(bytes))) {
      characters.push_back({kReplacement, 2});
    } else {
      characters.push_back({bytes, length == 1 ? size_t{1} : size_t{2}});
    }
  }
  return characters;
}

void AppendEscaped(std::string_view bytes, std::string& to) {
  if (bytes == "&") {
    to += "&amp;";
  } else if (bytes == "<") {
    to += "&lt;";
  } else if (bytes == ">") {
    to += "&gt;";
  } else if (bytes == "\"") {
    to += "&quot;";
  } else if (bytes == "'") {
    to += "&#39;";
  } else {
    to += bytes;
  }
}

}  // namespace

std::string Shown(std::string_view text, size_t columns_max) {
  // A character has at most 4 bytes and at least one column: the rest of a long text is not needed
  // for the decision, except its end.
  std::vector<Character> characters = CharactersOf(text);
  size_t columns = 0;
  for (const Character& each : characters) {
    columns += each.columns;
  }
  size_t head = characters.size();
  size_t tail = characters.size();
  if (columns > columns_max) {
    size_t room = columns_max > 2 ? columns_max - 2 : 0;
    const size_t room_of_tail = room / 3;
    for (size_t used = 0; tail > 0 && used + characters[tail - 1].columns <= room_of_tail;) {
      used += characters[--tail].columns;
    }
    room -= room_of_tail;
    for (head = 0; head < tail && characters[head].columns <= room; ++head) {
      room -= characters[head].columns;
    }
  }
  std::string shown;
  for (size_t i = 0; i < head; ++i) {
    AppendEscaped(characters[i].bytes, shown);
  }
  if (head < characters.size()) {
    shown += kEllipsis;
    for (size_t i = tail; i < characters.size(); ++i) {
      AppendEscaped(characters[i].bytes, shown);
    }
  }
  return shown;
}

std::string FormatCount(int64_t count) {
  std::string text = fmt::format("{}", count);
  const size_t first = count < 0 ? 1 : 0;
  for (size_t at = text.size(); at > first + 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

std::string FormatSeconds(double seconds) {
  if (std::abs(seconds) < 0.05) {
    return "0s";
  }
  if (std::abs(seconds) < 9.95) {
    return fmt::format("{:.1f}s", seconds);
  }
  if (std::abs(seconds) < 59.5) {
    return fmt::format("{:.0f}s", seconds);
  }
  return FormatDuration(std::chrono::duration_cast<Duration>(
      std::chrono::seconds(static_cast<int64_t>(std::llround(seconds)))));
}

std::string FormatShare(int64_t part, int64_t whole) {
  if (whole <= 0) {
    return "-";
  }
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (part == 0 || part == whole) {
    return fmt::format("{:.0f}%", percent);
  }
  return fmt::format("{:.1f}%", std::clamp(percent, 0.1, 99.9));
}

std::string FormatNumberOf(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", FormatCount(count), noun, count == 1 ? "" : "s");
}

}  // namespace cachewarm::cli::report
